"""The process of a console: it serves until a signal, or the end of stdin."""

from __future__ import annotations

import logging
import os
import socket
import sys
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn

from barnabas.console.app import create_app

if TYPE_CHECKING:
    from barnabas.console.settings import Settings

CONNECTIONS_MAX = 200
LONGEST_HEADERS = 64 * 1024
STOP_S = 1
"""How long a stop waits for requests, seconds."""


def run(settings: Settings, listener: socket.socket, *, ends_with_stdin: bool = False) -> int:
    """Serve at `listener` until SIGINT, SIGTERM, or the end of stdin. Returns the exit code."""
    server = uvicorn.Server(configuration(settings))
    if ends_with_stdin:
        Thread(target=_end_with_stdin, args=[server], daemon=True).start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has stopped and raises the signal again
    return 0 if server.started else 1


def configuration(settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        create_app(settings),
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )


def _end_with_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True
