"""The cluster of a command: it says that it waits, and suggests a name for one that does not exist."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Timer
from types import TracebackType
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.terminal.notes import note
from barnabas.terminal.screen import is_terminal
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.errors import KafkaError, ProtocolError

T = TypeVar("T")

PATIENCE_S = 2.0
"""How long the names are waited for, seconds."""
SILENT_S, SILENT_OFF_TERMINAL_S = 2.0, 10.0
"""After this time a wait is told on stderr, seconds."""


class CommandCluster(Cluster):
    """A cluster that tells its first long wait, and adds `; did you mean x?` to a `NotFound` that leaves it."""

    _has_noted = False

    def retry(self, attempt: Callable[[float], T]) -> T:
        """As in `Cluster`; a wait is told once, with its end."""
        silent_s = SILENT_S if is_terminal(sys.stderr) else SILENT_OFF_TERMINAL_S
        if self._has_noted or self.timeout_s <= silent_s:
            return super().retry(attempt)
        timer = Timer(silent_s, self._note_wait)
        timer.daemon = True
        timer.start()
        try:
            return super().retry(attempt)
        finally:
            timer.cancel()

    def _note_wait(self) -> None:
        self._has_noted = True
        servers = ",".join(f"{host}:{port}" for host, port in self.bootstrap)
        note(f"waiting for {servers}, until {self.timeout_s:g} s have passed (--timeout)")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, NotFound) and error.kind:
            self.timeout_s = min(self.timeout_s, PATIENCE_S)
            try:
                others = [name for name in self._names(error.kind) if name != error.name]  # created just now
                error.args = (f"{error}{suggestion(error.name, others)}",)
            except (ClientError, KafkaError, ProtocolError):
                pass  # the error is said without a suggestion
        super().__exit__(kind, error, trace)

    def _names(self, kind: str) -> list[str]:
        """All names of a kind; none of a kind that has no list."""
        if kind == "topic":
            from barnabas.client.admin.topics import list_topics

            return [topic.name or "" for topic in list_topics(self) if not topic.is_internal]
        if kind in ("group", "share group"):
            from barnabas.client.groups.consumer_groups import list_groups

            return [group.group_id for group in list_groups(self)]
        if kind == "transactional id":
            from barnabas.client.admin.transactions import list_transactions

            return [transaction.transactional_id for transaction in list_transactions(self)]
        if kind == "user":
            from barnabas.client.admin.users import list_credentials

            return list(dict.fromkeys(credential.user for credential in list_credentials(self)))
        return []
