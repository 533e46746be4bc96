"""Hides what nobody needs to see of records of the cluster metadata: passwords of brokers' configs, and credentials.

Kafka's `kafka-dump-log` shows them; its metadata shell hides them (`MetadataNodeRedactionCriteria`), as here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from barnabas.wire.configdef import PASSWORD

HIDDEN: Final = "[hidden]"
_BROKER: Final = 4
_OF_SCRAM: Final = ("salt", "storedKey", "serverKey")


def hide_secrets(record: str, data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record of this class, without secrets."""
    if record == "UserScramCredentialRecord":
        return data | dict.fromkeys(_OF_SCRAM, HIDDEN)
    if record == "ConfigRecord" and data["resourceType"] == _BROKER and data["value"] and _is_password(data["name"]):
        return data | {"value": HIDDEN}
    return data


def _is_password(name: str) -> bool:
    """Whether a broker key is a password, also with the prefix of a listener; of an unknown one its name tells."""
    return name.endswith(("password", "secret")) or any(f".{name}".endswith(f".{one}") for one in _passwords())


@cache
def _passwords() -> frozenset[str]:
    from barnabas.broker.config.keys import BROKER_KEYS

    return frozenset(name for name, key in BROKER_KEYS.items() if key.type == PASSWORD)
