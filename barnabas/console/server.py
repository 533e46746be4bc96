"""The process of a console: it serves until a signal, or the end of stdin."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import sys
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn

from barnabas.console.app import create_app
from barnabas.console.guard.connections import GuardedProtocol

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.console.settings import Settings

LONGEST_HEADERS = 64 * 1024
STOP_S = 1
"""How long a stop waits for requests, seconds."""
_ARENAS, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
"""Of glibc's mallopt."""


def checked_app(settings: Settings) -> Starlette:
    """The application. ValueError, one sentence, for settings with which it must not be served."""
    if settings.key is not None and settings.certificate is None:
        raise ValueError("--tls-key is the key of --tls-cert: give that too")
    if settings.certificate is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key, _no_password)
        except (OSError, ValueError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise ValueError(f"--tls-cert {settings.certificate}: {why}") from None
    app = create_app(settings)
    app.state.console.access.check_start()
    return app


def _no_password() -> str:
    raise ValueError("the private key has a password; give one without")


def run(app: Starlette, settings: Settings, listener: socket.socket, *, ends_with_stdin: bool = False) -> int:
    """Serve at `listener` until SIGINT, SIGTERM, or the end of stdin. Returns the exit code."""
    _give_memory_back()
    server = uvicorn.Server(configuration(settings, app))
    if ends_with_stdin:
        Thread(target=_end_with_stdin, args=[server], daemon=True).start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has stopped and raises the signal again
    return 0 if server.started else 1


def configuration(settings: Settings, app: Starlette) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        http=GuardedProtocol,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )


def _give_memory_back() -> None:
    """Have glibc return freed buffers to the system: by default each thread keeps megabytes of what it has fetched."""
    try:
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
    except (ImportError, OSError, AttributeError):
        return  # not glibc
    mallopt(_ARENAS, 1)
    mallopt(_MMAP_THRESHOLD, 128 * 1024)
    mallopt(_TRIM_THRESHOLD, 128 * 1024)


def _end_with_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True
