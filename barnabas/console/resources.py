"""Declarations of what the console serves: a resource is a page, a JSON answer and an entry of OpenAPI at once.

    @resource("/topics/{topic}", template="topics/topic.html", summary="One topic.")
    def show_topic(cluster: Cluster, query: TopicQuery) -> TopicView: ...

    @action("/topics/{topic}/delete", summary="Delete a topic.")
    def delete_topic(cluster: Cluster, form: DeleteTopic) -> Done: ...

    @stream("/topics/{topic}/events", summary="Records as they arrive.")
    def tail(cluster: Cluster, query: TailQuery) -> Iterator[Event | None]: ...

    @download("/topics/{topic}/export", summary="Records as a file.")
    def export(cluster: Cluster, query: ExportQuery) -> Iterator[Download | bytes]: ...

A function has some of the parameters `cluster`, `query` (an action: `form`) and `call`, by these names.
`query` and `form` are frozen dataclasses whose fields are filled from the path, then the query string, the form or the
JSON body (`values.py`). Functions are synchronous: they run in a thread. `serving.py` makes the endpoints.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

if TYPE_CHECKING:
    from barnabas.console.events import Event

Kind = Literal["resource", "action", "stream", "download"]
PARAMETERS = ("cluster", "query", "form", "call")


@dataclass(frozen=True)
class Done:
    """The outcome of an action: a sentence, and the path where a page goes on."""

    text: str
    location: str


@dataclass(frozen=True)
class Download:
    """What a download is: the first item of its function."""

    filename: str
    media_type: str


@dataclass(frozen=True)
class Declared:
    """One declaration."""

    kind: Kind
    path: str
    summary: str
    function: Callable[..., Any]
    template: str | None = None
    input_type: type | None = None
    """The dataclass of `query` or `form`."""
    view_type: Any = None
    """The type that the function returns."""
    parameters: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Fields of the form that no log shows."""
    timeout_s: float | None = None
    """How long brokers are waited for; None: as the settings say."""
    ends_with_client: bool = False
    """Whether `call.is_gone` is set when the client closes the connection."""

    @property
    def method(self) -> str:
        """The method of HTTP."""
        return "POST" if self.kind == "action" else "GET"

    @property
    def needs_cluster(self) -> bool:
        """Whether the function borrows a client."""
        return "cluster" in self.parameters

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, for tests and other functions."""
        return self.function(*args, **kwargs)


def resource(
    path: str,
    *,
    template: str | None = None,
    summary: str,
    timeout_s: float | None = None,
    ends_with_client: bool = False,
) -> Callable[[Callable[..., Any]], Declared]:
    """Declare a page (`template`; None: JSON only) at `path` and a JSON answer at `/api` + `path`.

    With `ends_with_client` the function looks at `call.is_gone`, to end when nobody waits any more.
    """
    options = {"template": template, "timeout_s": timeout_s, "ends_with_client": ends_with_client}
    return lambda function: _declare("resource", path, summary, function, **options)


def action(
    path: str, *, summary: str, secrets: tuple[str, ...] = (), timeout_s: float | None = None
) -> Callable[[Callable[..., Done]], Declared]:
    """Declare a change: POST of a form at `path`, POST of a JSON object at `/api` + `path`."""
    return lambda function: _declare("action", path, summary, function, secrets=secrets, timeout_s=timeout_s)


def stream(
    path: str, *, summary: str, timeout_s: float | None = None
) -> Callable[[Callable[..., Iterator[Event | None]]], Declared]:
    """Declare server-sent events at `path` and `/api` + `path`.

    The function is a generator; each step takes about a second at most and yields an event, or None if there is none.
    """
    return lambda function: _declare("stream", path, summary, function, timeout_s=timeout_s)


def download(
    path: str, *, summary: str, timeout_s: float | None = None
) -> Callable[[Callable[..., Iterator[Download | bytes]]], Declared]:
    """Declare a file at `path` and `/api` + `path`.

    The function is a generator: first a `Download`, then the bytes, in pieces that each take about a second at most.
    An error before the first piece is answered; a later one breaks the connection, so that the file is not taken for a
    whole one.
    """
    return lambda function: _declare("download", path, summary, function, timeout_s=timeout_s)


def _declare(kind: Kind, path: str, summary: str, function: Callable[..., Any], **options: Any) -> Declared:
    hints = get_type_hints(function, include_extras=True)
    parameters = tuple(inspect.signature(function).parameters)
    unknown = [name for name in parameters if name not in PARAMETERS]
    assert not unknown, f"{function.__name__} has the parameter {unknown[0]}; there are {', '.join(PARAMETERS)}"
    input_type = hints.get("form" if kind == "action" else "query")
    return Declared(
        kind=kind,
        path=path,
        summary=summary,
        function=function,
        input_type=input_type,
        view_type=hints.get("return"),
        parameters=parameters,
        **options,
    )
