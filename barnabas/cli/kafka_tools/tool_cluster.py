"""The cluster of a tool: it fails with the broker's own error where `Cluster` says that there is no such name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound

T = TypeVar("T")


class ToolCluster(Cluster):
    """A cluster that raises the error that a broker answered in place of `NotFound`."""

    def retry(self, attempt: Callable[[float], T]) -> T:
        """As in `Cluster`."""
        try:
            return super().retry(attempt)
        except NotFound as error:
            raise error.answer or error from None
