"""Sends items to other brokers, several in a request: while a request is in flight, later items wait for the next.

Items that are added during a turn are sent together at its end. Items of one key are never in the same request, so that
answers can be told apart, and reach the broker in their order. Every item is answered: with the response of its
request, or with the KafkaError of the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.broker.event_loop.guarded import call_guarded

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.wire.errors import KafkaError
    from barnabas.wire.schema import Message

T = TypeVar("T")

ITEMS_OF_A_REQUEST = 500
"""How many items a request has at most: it is answered in one turn."""


class NodeQueues(Generic[T]):
    """The items that wait for other brokers, by broker and by the group of items that may share a request."""

    def __init__(
        self,
        loop: Loop,
        client: Callable[[int], NetworkClient],
        timeout_s: float,
        *,
        build: Callable[[Sequence[T]], Message],
        on_response: Callable[[Sequence[T], Any], None],
        key: Callable[[T], Hashable],
        group: Callable[[T], Hashable] = lambda _: None,
    ) -> None:
        """`build` makes the request of items, `on_response` gets the items and the response's message or a KafkaError.

        Items of different groups are never in the same request.
        """
        self._loop = loop
        self._client = client
        self._timeout_s = timeout_s
        self._build = build
        self._on_response = on_response
        self._key = key
        self._group = group
        self._waiting: dict[tuple[int, Hashable], list[T]] = {}
        """Also has a list, which may be empty, for every request that is in flight."""

    def add(self, node_id: int, item: T) -> None:
        """Send an item to a broker, at the end of this turn or after the request that is in flight."""
        queue = (node_id, self._group(item))
        waiting = self._waiting.get(queue)
        if waiting is None:
            self._waiting[queue] = [item]
            self._loop.call_after_turn(partial(self._send, queue))
        else:
            waiting.append(item)

    def _send(self, queue: tuple[int, Hashable]) -> None:
        chosen: dict[Hashable, T] = {}
        rest: list[T] = []
        for item in self._waiting[queue]:
            if len(chosen) < ITEMS_OF_A_REQUEST and (key := self._key(item)) not in chosen:
                chosen[key] = item
            else:
                rest.append(item)
        if not chosen:
            del self._waiting[queue]
            return
        self._waiting[queue] = rest
        items = list(chosen.values())
        self._client(queue[0]).send(self._build(items), partial(self._done, queue, items), timeout_s=self._timeout_s)

    def _done(self, queue: tuple[int, Hashable], items: Sequence[T], response: Message | KafkaError) -> None:
        call_guarded("The response of another broker", self._on_response, items, response)
        self._send(queue)
