"""A broker with listeners for log-ins and TLS, of Barnabas or of Apache Kafka: the same keys for both."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench import secured
from bench.servers import Server
from bench.testkits.product import Place, Setup

LOG_IN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": secured.USER,
    "sasl.password": secured.PASSWORD,
}
"""The administrator."""


def start(stack: ExitStack, make: Callable[..., Server], setup: Setup, keys: Mapping[str, str] | None = None) -> Place:
    """Start a server with the listener that the setup needs; the stack ends it and removes its data."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="testkits-")))
    server = make(folder / "data", config={**secured.SETTINGS, **(keys or {})})
    secured.secure(server, folder)
    stack.enter_context(server)
    if setup is Setup.TLS:
        return tls_place(f"{server.host}:{server.ports['SSL']}", secured.ca_file(server))
    return log_in_place(f"{server.host}:{server.ports['SASL_PLAINTEXT']}")


def tls_place(bootstrap: str, ca: Path) -> Place:
    """A listener with TLS."""
    return Place(bootstrap, client={"security.protocol": "ssl", "ssl.ca.location": str(ca)})


def log_in_place(bootstrap: str) -> Place:
    """A listener where clients log in. The administrator is there from the start."""
    return Place(bootstrap, client=LOG_IN, principal=f"User:{secured.USER}")
