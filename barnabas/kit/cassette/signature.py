"""The signature that equal requests share: their JSON without the values that clients change from one run to the next.

The order of a list does not count. Left out are times, epochs, generations, producer ids, ids that clients make, the
bytes of subscriptions and assignments. Ids of members that the coordinator gave are compared.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from barnabas.kit.cassette.secrets import without_secrets
from barnabas.wire.codec.json_form import to_json

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

LEFT_OUT: Final = frozenset(
    {
        "assignments",
        "clientInstanceId",
        "clientSoftwareName",
        "clientSoftwareVersion",
        "committedLeaderEpoch",
        "committedMetadata",
        "committedOffset",
        "currentLeaderEpoch",
        "generationId",
        "leaderEpoch",
        "metadata",
        "metrics",
        "producerEpoch",
        "producerId",
        "reason",
        "terminating",
        "timeoutMs",
        "topicPartitions",
        "unknownTaggedFields",
    }
)
_EPOCHS: Final = frozenset({"memberEpoch", "generationIdOrMemberEpoch"})


def signature(request: Message, version: int, given_ids: Collection[str]) -> str:
    """Equal for requests that are the same; `given_ids` are the members' ids that a coordinator gave."""
    return str(_compared(without_secrets(to_json(request, version)), given_ids))


def _compared(body: Any, given_ids: Collection[str]) -> Any:
    if isinstance(body, list):
        return sorted([_compared(part, given_ids) for part in body], key=str)
    if not isinstance(body, dict):
        return body
    compared = {}
    for name, value in body.items():
        if name == "memberId":
            compared[name] = value if not value or value in given_ids else "of the client"
        elif name in _EPOCHS:
            compared[name] = min(value, 1) if name == "memberEpoch" else "any"
        elif name not in LEFT_OUT:
            compared[name] = _compared(value, given_ids)
    return compared
