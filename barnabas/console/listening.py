"""The address of a console. A plain module: `serve --console` listens before it starts the process of the console."""

from __future__ import annotations

import socket

BACKLOG = 128


class CannotListen(Exception):  # noqa: N818 (as the client's errors)
    """The address of the console is taken or not this machine's; the text is one sentence."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at the address; an IPv6 address may have brackets. `CannotListen`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM)[0]
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


def url(host: str, port: int, *, has_tls: bool = False) -> str:
    """The address of the pages, as a browser on this machine opens them."""
    scheme = "https" if has_tls else "http"
    host = host.strip("[]")
    shown = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{scheme}://{shown}:{port}"
