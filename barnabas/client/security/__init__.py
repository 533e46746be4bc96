"""How the client's connections are secured: TLS, SASL, and the rules by which an authorizer decides.

    keys.py        the keys that are understood, and those that are secret
    settings.py    a client's configuration in Kafka's keys, checked
    jaas.py        the line of sasl.jaas.config
    stores.py      keys and certificates of PEM and PKCS12 stores
    tls.py         a socket with TLS, failures as sentences
    sasl.py        the exchange of SASL messages on a connection, and its mechanisms
    scram.py       SCRAM: the client's side, and credentials from a password
    diagnosis.py   what a listener expects that closes connections
    acl_rules.py   which ACL decides

Nothing of it is imported by a client without security.
"""

from __future__ import annotations
