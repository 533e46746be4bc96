"""The process of a console: its sockets, its ready line, its end."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn

from barnabas.console.app import create_app

if TYPE_CHECKING:
    from barnabas.console.settings import Settings

BACKLOG = 128
CONNECTIONS_MAX = 200


class CannotListen(Exception):  # noqa: N818 (as the client's errors)
    """The address of the console is taken or not this machine's; the text is one sentence."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at the address. `CannotListen`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise CannotListen(f"the console cannot listen on {host}:{port}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(f"the console cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def url(settings: Settings, port: int) -> str:
    """The address of the pages."""
    scheme = "https" if settings.certificate else "http"
    host = settings.host.strip("[]")
    shown = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{scheme}://{shown}:{port}"


def run(settings: Settings, *, on_ready: Callable[[str], None], ends_with_stdin: bool = False) -> int:
    """Serve until SIGINT, SIGTERM, or the end of stdin. `on_ready` gets the URL. Returns the exit code."""
    with listen(settings.host.strip("[]"), settings.port) as listener:
        config = uvicorn.Config(
            create_app(settings),
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            lifespan="on",
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=64 * 1024,
            timeout_graceful_shutdown=1,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            ws="none",
        )
        server = uvicorn.Server(config)
        on_ready(url(settings, listener.getsockname()[1]))
        if ends_with_stdin:
            Thread(target=_end_with_stdin, args=[server], daemon=True).start()
        server.run(sockets=[listener])
    return 0 if server.started else 1


def _end_with_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True
