"""How the client's connections are secured: TLS, SASL, and the rules by which an authorizer decides.

    keys.py        the keys that are understood, and the secret ones
    settings.py    a client's configuration in Kafka's keys, checked
    jaas.py        the line of sasl.jaas.config
    stores.py      keys and certificates of PEM and PKCS12 stores
    tls.py         a socket with TLS, failures as sentences
    sasl.py        the exchange of SASL messages on a connection, and its mechanisms
    scram.py       SCRAM: the client's side, and credentials from a password
    diagnosis.py   whether a listener that closes connections expects TLS or a log-in
    acl_rules.py   which ACL decides

A client without security does not import this package.
"""

from __future__ import annotations
