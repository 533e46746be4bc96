"""The requests of clients in readable lines: joins, syncs, changes in heartbeats, fetches, commits, transactions.

Repeated requests are one line with a count: fetches, produces and heartbeats of one client without news.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from barnabas.kit.traffic.recorder import Entry

SUMMARIZED: Final = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.PRODUCE,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.METADATA,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_COMMIT,
    }
)
"""APIs of which several in a row are one line."""
HIDDEN: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""APIs that every client uses when it connects; shown only when they fail."""
COUNTED: Final = frozenset({"records", "bytes", "batches", "partitions_with_records"})
"""Details that are added up."""


class _Line:
    """One line in the making."""

    def __init__(self, entry: Entry) -> None:
        self.first = self.last = entry
        self.count = 1
        self.sums = {name: entry.details.get(name, 0) for name in COUNTED}

    def takes(self, entry: Entry) -> bool:
        """Whether a request is one more of the same."""
        last = self.last
        return (
            entry.api in SUMMARIZED
            and entry.api == last.api
            and entry.connection == last.connection
            and (entry.topics, entry.groups, entry.transactional_ids)
            == (last.topics, last.groups, last.transactional_ids)
            and entry.errors == last.errors
            and entry.outcome == last.outcome
            and entry.details.get("member_epoch") == last.details.get("member_epoch")
            and "assigned" not in entry.details
        )

    def add(self, entry: Entry) -> None:
        """Count one more."""
        self.last = entry
        self.count += 1
        for name in COUNTED:
            self.sums[name] += entry.details.get(name, 0)

    def text(self, clock: type[datetime]) -> str:
        """The line."""
        entry = self.last
        when = clock.fromtimestamp(self.first.time).strftime("%H:%M:%S.%f")[:-3]
        who = entry.client_id or f"connection {entry.connection}"
        times = f" ×{self.count}" if self.count > 1 else ""
        parts = [f"{when}  {who}  {api_name(entry.api)}{times}", *_about(entry), *self._details()]
        parts += [f"-> {_outcome(entry)}"]
        return "  ".join(parts)

    def _details(self) -> list[str]:
        details = {
            name: value
            for name, value in self.last.details.items()
            if value not in (None, "", -1, [], {}, False) or name == "committed"
        }
        texts = []
        for name, value in details.items():
            if name in COUNTED:
                texts.append(f"{name}={self.sums[name]}")
            elif name == "offsets":
                texts.append("offsets=" + ",".join(f"{where}:{offset}" for where, offset in value.items()))
            elif name in _SHOWN:
                texts.append(f"{name}={value}")
        return texts


_SHOWN: Final = frozenset(
    {
        "member_id", "generation_id", "member_epoch", "is_leader", "assigned", "committed", "producer_id",
        "producer_epoch", "acks", "members",
    }
)  # fmt: skip


def _about(entry: Entry) -> list[str]:
    names = (("", entry.topics), ("group ", entry.groups), ("transactional id ", entry.transactional_ids))
    return [kind + ", ".join(texts) for kind, texts in names if texts]


def _outcome(entry: Entry) -> str:
    if entry.errors:
        return ", ".join(f"{where}: {name}" if where else name for where, name in entry.errors)
    return {"answered": "ok", "unanswered": "no answer asked for", "closed": "connection closed", "waits": "waits"}[
        entry.outcome
    ]


def lines(entries: Iterable[Entry], last: int | None = None) -> list[str]:
    """The lines of these requests, oldest first; only the last of them if `last` is given."""
    from datetime import datetime

    all_lines: list[_Line] = []
    open_lines: dict[tuple[int, ApiKey], _Line] = {}
    for entry in entries:
        if entry.api in HIDDEN and not entry.errors and entry.outcome == "answered":
            continue
        line = open_lines.get((entry.connection, entry.api))
        if line is not None and line.takes(entry):
            line.add(entry)
            continue
        if entry.api not in SUMMARIZED:  # after a join, a commit or a transaction a new line begins
            open_lines = {key: line for key, line in open_lines.items() if key[0] != entry.connection}
        line = _Line(entry)
        all_lines.append(line)
        open_lines[entry.connection, entry.api] = line
    shown: Sequence[_Line] = all_lines if last is None else all_lines[-last:]
    return [line.text(datetime) for line in shown]
