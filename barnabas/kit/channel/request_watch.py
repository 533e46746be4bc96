"""The channel of `serve --console`: the console reads what goes over the broker's connections, and can do nothing else.

It listens on the loopback with a token that only the console gets, as the control channel does, but without its
operations on faults, clocks and clusters: a broker that was not started with `--control` has none of those.
Each broker of `serve --brokers N --console` has one, and writes a control file, which the console of the cluster reads.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.net.acceptor import bind
from barnabas.broker.start.start_errors import StartError
from barnabas.kit.channel.control_file import write_control_file
from barnabas.kit.channel.http_server import serve_control
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.operations.exchanges import KEYS, exchanges_of
from barnabas.kit.traffic.capture import Capture
from barnabas.kit.values import Values

if TYPE_CHECKING:
    import trio

    from barnabas.broker.server import Server

HOST: Final = "127.0.0.1"
BACKLOG: Final = 16
TOKEN_BYTES: Final = 24
CLUSTERS: Final = "/v1/clusters"
EXCHANGES: Final = "/v1/clusters/0/exchanges"


class RequestWatch:
    """Answers the console; a companion of the broker."""

    def __init__(self, file: str | None = None) -> None:
        """`file` is the control file to write; None: none."""
        self._file = file
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._capture = Capture()
        self._published = ""
        self._server: Server

    async def __call__(self, server: Server, nursery: trio.Nursery) -> None:
        """Start: called when the broker serves. StartError if there is no port."""
        self._server = server
        try:
            listening = bind(HOST, 0, BACKLOG)
        except OSError as error:
            raise StartError(f"The channel for the console's requests cannot listen: {error.strerror}") from error
        port = listening.getsockname()[1]
        self._published = json.dumps({"control": f"http://{HOST}:{port}", "token": self._token})
        if self._file is not None:
            write_control_file(self._file, self._published)
        nursery.start_soon(serve_control, listening, self._token, self._answer)

    def published(self) -> str:
        """Address and token, as a control file has them."""
        return self._published

    async def _answer(self, method: str, path: str, values: dict[str, Any]) -> object:
        if method == "GET" and path == CLUSTERS:
            return {"clusters": [{"id": 0}], "operations": ["exchanges"]}
        if path != EXCHANGES:
            raise NotFoundError("A broker without --control shows its requests, and nothing else")
        if method != "POST":
            raise ControlError(f"{method} is not for {path}")
        request = Values(values)
        request.only(KEYS)
        return exchanges_of(self._capture, self._server, request)
