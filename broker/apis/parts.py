"""Requests of many items are handled part by part, between the turns, and their responses are joined.

For APIs that treat each item of an array on its own: partitions of topics, topics of groups. A part is a request with
some of the items, so the handler does not know of parts. An item that is itself too long is divided too, and
the answers of its parts become one item of the response again. Nearly every request is a single part.

Invariant: the responses of the parts are joined in the order of the request.

Why messages are divided, and not a pause made in the loop of each handler: 24 handlers stay plain functions that see
one state from begin to end. With a pause each would be a coroutine that has to read group, leader and access again
after it, for requests that are hardly ever so long. And what a coordinator writes for a part stays one bounded batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.event_loop.waiting import TaskGroup, outcome_of, pause
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message

    Handler = Callable[[RequestContext, Any], Any]
    ErrorResponse = Callable[[Any, KafkaError], Message | None]

ITEMS_OF_A_PART = 100
"""At about ten microseconds for each item a part takes a millisecond."""


class Parts:
    """How the requests of an API are divided."""

    __slots__ = ("distinct", "request", "response", "size")

    def __init__(
        self,
        request: str,
        response: str | None = None,
        *,
        size: int = ITEMS_OF_A_PART,
        distinct: Callable[[list[Any]], list[Any]] | None = None,
    ) -> None:
        """`request` is the path of the array that is divided, with dots: `topics.partitions`; `response` is the path of
        the answers, by default the same.

        A part has `size` items. `distinct` takes the items of the outermost array and returns them without repetitions:
        each is answered once.
        """
        self.request = tuple(request.split("."))
        self.response = tuple((response or request).split("."))
        self.size = size
        self.distinct = distinct


def in_parts(handler: Handler, choices: Sequence[Parts], error_response: ErrorResponse) -> Handler:
    """A handler that calls `handler` once for each part of a request.

    Of `choices`, which are for different versions, the first whose array is not empty is used. `error_response` makes
    the response for a KafkaError of a part, or returns None if there is none.
    """

    first = choices[0]
    is_short = _ARE_SHORT[len(first.request) - 1]

    def handle(ctx: RequestContext, request: Any) -> Any:
        if is_short(request, first.request, first.size):
            return handler(ctx, request)  # nearly always
        for parts in choices:
            name = parts.request[0]
            items = getattr(request, name)
            if items:
                break
        else:
            return handler(ctx, request)
        if parts.distinct is not None and len(items) > 1:
            setattr(request, name, parts.distinct(items))
        if _weight(request, parts.request) <= parts.size:
            return handler(ctx, request)
        return _in_parts(ctx, request, handler, parts, error_response)

    return handle


def _is_one(request: Any, path: tuple[str], size: int) -> bool:  # noqa: ARG001 - as the others
    """Whether the array has one item."""
    return len(getattr(request, path[0])) == 1


def _is_one_short(request: Any, path: tuple[str, str], size: int) -> bool:
    """Whether the outer array has one item, and its array is short."""
    outer = getattr(request, path[0])
    return len(outer) == 1 and (items := getattr(outer[0], path[1])) is not None and len(items) < size


def _is_one_of_one_short(request: Any, path: tuple[str, str, str], size: int) -> bool:
    """Whether the outer arrays have one item each, and the inner array is short."""
    items = getattr(request, path[0])
    if len(items) != 1 or (items := getattr(items[0], path[1])) is None or len(items) != 1:
        return False
    return len(getattr(items[0], path[2])) < size - 1


_ARE_SHORT: Final[tuple[Callable[[Any, Any, int], bool], ...]] = (_is_one, _is_one_short, _is_one_of_one_short)
"""By length of the path: whether a request is a single part, for the usual request of one item in the outer arrays."""


def distinct_names(names: list[Any]) -> list[Any]:
    """Each name once, in the order of the request."""
    return list(dict.fromkeys(names))


def _weight(owner: Any, path: tuple[str, ...]) -> int:
    """The number of items at a path and in the outer arrays; an array that is null means all items."""
    items = getattr(owner, path[0])
    if items is None:
        return ITEMS_OF_A_PART
    if len(path) == 1:
        return len(items)
    rest = path[1:]
    return len(items) + sum([_weight(item, rest) for item in items])


def divide(owner: Any, path: tuple[str, ...], size: int) -> Iterator[tuple[Any, int]]:
    """Copies of `owner` with at most `size` items at the path, in order.

    The number with each says in how many of the outer arrays its first item continues the last item of the part before.
    """
    items = getattr(owner, path[0])
    if items is None:
        yield owner, 0
        return
    if len(path) == 1:
        for start in range(0, len(items), size):
            yield _with(owner, path[0], items[start : start + size]), 0
        return
    rest = path[1:]
    chosen: list[Any] = []
    used = 0
    for item in items:
        weight = 1 + _weight(item, rest)
        if chosen and used + weight > size:
            yield _with(owner, path[0], chosen), 0
            chosen, used = [], 0
        if weight <= size:
            chosen.append(item)
            used += weight
        else:
            for number, (piece, joined) in enumerate(divide(item, rest, size)):
                yield _with(owner, path[0], [piece]), 1 + joined if number else 0
    if chosen:
        yield _with(owner, path[0], chosen), 0


def _with(owner: Any, name: str, items: list[Any]) -> Any:
    changed = copy(owner)
    setattr(changed, name, items)
    return changed


def join(response: Any, other: Any, path: tuple[str, ...], joined: int) -> None:
    """Append the items of `other` to the items of `response`; `joined` as from `divide`."""
    items, others = getattr(response, path[0]), getattr(other, path[0])
    if joined and items and others:
        join(items[-1], others[0], path[1:], joined - 1)
        others = others[1:]
    items += others


async def _in_parts(
    ctx: RequestContext, request: Any, handler: Handler, parts: Parts, error_response: ErrorResponse
) -> Message:
    joined: list[int] = []
    with TaskGroup(ctx.broker.loop.slices) as group:
        for index, (part, continues) in enumerate(divide(request, parts.request, parts.size)):
            if index:
                await pause()
            joined.append(continues)
            group.start(_part(ctx, part, handler, error_response))
        responses = await group.results()
    for response in responses:
        if isinstance(response, Exception):
            raise response
    return _joined(responses, joined, parts)


async def _part(ctx: RequestContext, part: Any, handler: Handler, error_response: ErrorResponse) -> Message:
    """The response to one part; for a KafkaError the response that `error_response` makes, if any."""
    try:
        response: Message = await outcome_of(handler(ctx, part))
    except KafkaError as error:
        failed = error_response(part, error)
        if failed is None:
            raise
        return failed
    return response


def _joined(answers: list[Any], joined: list[int], parts: Parts) -> Message:
    """Join the responses; an error of a whole part becomes the error of the whole response."""
    response: Message = answers[0]
    for other, continues in zip(answers[1:], joined[1:], strict=True):
        join(response, other, parts.response, continues)
        code = getattr(other, "error_code", 0)
        if code and not response.error_code:  # type: ignore[attr-defined]
            response.error_code = code  # type: ignore[attr-defined]
    return response
