"""Kafka's wire protocol: bytes to typed messages and back, record batches; no I/O, no clock.

`schema.py` is the language in which `messages` declares Kafka's messages, `registry.py` finds a message by API key,
`frame.py` has requests and responses with their headers, `errors.py` the error codes, `configdef.py` the types of
config keys, `key_stores.py` reads PEM and PKCS12 (the one place with a file: OpenSSL takes keys from paths). The rooms:

- `messages`: the declarations, one module for each family of APIs;
- `codec`: parses and builds messages of one version, and their JSON form;
- `batches`: record batches of magic 2: read, built, checked, compressed;
- `clients`: what only clients and the broker's answers to them need: the protocol without a socket, partitioners,
  telemetry.
"""
