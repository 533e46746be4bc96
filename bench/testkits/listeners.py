"""Log-ins and TLS: what a broker needs for them, and what its clients do."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bench import secured
from bench.testkits.product import Place, Setup
from tests.support.processes.kafka import KafkaServer

LOG_IN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": secured.USER,
    "sasl.password": secured.PASSWORD,
}
"""The administrator."""


def start_kafka(stack: ExitStack, setup: Setup, keys: Mapping[str, str] | None = None) -> Place:
    """Start Apache Kafka with the listener that the setup needs; the stack ends it and removes its data."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="testkits-")))
    server = KafkaServer(folder / "data", config={**secured.SETTINGS, **(keys or {})})
    secured.secure(server, folder)
    stack.enter_context(server)
    if setup is Setup.TLS:
        return tls_place(f"{server.host}:{server.ports['SSL']}", secured.ca_file(server))
    return log_in_place(f"{server.host}:{server.ports['SASL_PLAINTEXT']}")


def certificate(stack: ExitStack) -> tuple[Path, Path]:
    """Files with key and certificate of a broker on the loopback address, and with the CA; the stack removes them."""
    from barnabas.tools.secure.authority import Authority

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="testkits-")))
    authority = Authority.new("testkits")
    key_store, ca = folder / "broker.pem", folder / "ca.pem"
    key_store.write_text(authority.broker("testkits", ["127.0.0.1"]))
    ca.write_text(authority.pem)
    return key_store, ca


def tls_place(bootstrap: str, ca: Path) -> Place:
    """A listener with TLS."""
    return Place(bootstrap, client={"security.protocol": "ssl", "ssl.ca.location": str(ca)})


def log_in_place(bootstrap: str) -> Place:
    """A listener where clients log in. The administrator is there from the start."""
    return Place(bootstrap, client=LOG_IN, principal=f"User:{secured.USER}")
