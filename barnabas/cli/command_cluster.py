"""The cluster of a command: an error of a name that does not exist gets the most similar name that does."""

from __future__ import annotations

from types import TracebackType

from barnabas.client.admin import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.errors import KafkaError, ProtocolError

PATIENCE_S = 2.0
"""How long the names are waited for, seconds."""


class CommandCluster(Cluster):
    """A cluster that adds `; did you mean x?` to a `NotFound` which leaves its with statement."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, NotFound) and error.kind:
            self.timeout_s = min(self.timeout_s, PATIENCE_S)
            try:
                error.args = (f"{error}{suggestion(error.name, self._names(error.kind))}",)
            except (ClientError, KafkaError, ProtocolError):
                pass  # the error is said without a suggestion
        super().__exit__(kind, error, trace)

    def _names(self, kind: str) -> list[str]:
        """All names of a kind; none of a kind that has no list."""
        if kind == "topic":
            return [topic.name or "" for topic in list_topics(self) if not topic.is_internal]
        if kind in ("group", "share group"):
            from barnabas.client.groups import list_groups

            return [group.group_id for group in list_groups(self)]
        if kind == "transactional id":
            from barnabas.client.admin_transactions import list_transactions

            return [one.transactional_id for one in list_transactions(self)]
        return []
