"""The broker: a server of Kafka's protocol over logs on disk.

The packages are layers; each imports only those below it, which import-linter checks (pyproject.toml). From the top:
`server` (the process), `start` (creates and connects the parts), `apis` (request handlers), `context` (the whole
broker, for handlers), `sharing`, `coordinators`, `replicas` and `metadata`, `config` and `net`, `event_loop`. A class
gets the parts that it needs as constructor arguments; none below `context` gets the whole broker.
"""
