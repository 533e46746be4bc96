"""Operations that have two forms: plain ones that return, and ones to await in asyncio, trio and anyio.

An operation is written once, as a plain method that may wait, in a class that both forms inherit from. In the async
form it runs in a thread of the library that runs the test, so the event loop goes on, and so do the clients in it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from typing import Self

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

P = ParamSpec("P")
R = TypeVar("R")


class Sync:
    """The plain form."""


class Async:
    """The form to await."""


class operation(Generic[P, R]):  # noqa: N801 - a decorator
    """A method with two forms: the class through which it is called has one of them."""

    def __init__(self, function: Callable[Concatenate[Any, P], R]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "operation")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, Awaitable[R]]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        """The method of an instance, in its form."""
        if instance is None:
            return self
        bound = partial(self._function, instance)
        return partial(in_thread, bound) if isinstance(instance, Async) else bound


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that waits, in a thread of the library that runs this task."""
    call = partial(function, *args, **kwargs)
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        result: R = await trio.to_thread.run_sync(call, abandon_on_cancel=True)
        return result
    import asyncio  # noqa: TID251 - the user's tests run on it

    return await asyncio.to_thread(call)
