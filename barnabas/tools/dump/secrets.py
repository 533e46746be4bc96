"""Hides secrets in records of the cluster metadata: passwords in brokers' configs, and credentials.

Kafka's `kafka-dump-log` shows them; its metadata shell hides them (`MetadataNodeRedactionCriteria`), as here.
"""

from __future__ import annotations

from typing import Any, Final

HIDDEN: Final = "[hidden]"
_BROKER: Final = 4
_PASSWORDS: Final = (
    *("password", "passphrase", "secret", "secret.key", "jaas.config"),
    *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates"),
)
_OF_SCRAM: Final = ("salt", "storedKey", "serverKey")


def hide_secrets(record: str, data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record of this class, without secrets."""
    if record == "UserScramCredentialRecord":
        return data | dict.fromkeys(_OF_SCRAM, HIDDEN)
    if record == "ConfigRecord" and data["resourceType"] == _BROKER and data["value"] and is_password(data["name"]):
        return data | {"value": HIDDEN}
    return data


def is_password(name: str) -> bool:
    """Whether a broker key is a password, also with a listener's prefix; a test compares with the declarations."""
    return name.endswith(_PASSWORDS)
