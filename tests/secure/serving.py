"""A `barnabas serve --secure` in a process of its own, and what it prints for clients."""

from __future__ import annotations

import ast
import re
import signal
import socket
import ssl
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from barnabas.wire.properties import parse_properties
from tests.support.processes.commands import COMMAND, clean_environment

STOP_TIMEOUT_S = 30


class SecureServe:
    """A broker with a data directory in `folder`; `shown` is what it prints up to the end of the configurations."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.data = folder / "data"
        self.files = folder / "data-secure"
        command = [*COMMAND, "serve", "--secure", "--data-dir", str(self.data)]
        if "--listen" not in options:
            command += ["--listen", "127.0.0.1:0"]
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                env=clean_environment() | environment,
                text=True,
            )
        assert self.process.stdout is not None
        self.shown = ""
        for line in self.process.stdout:
            self.shown += line
            if ".load())" in line or "with the configurations in" in line:
                break

    def __enter__(self) -> SecureServe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        rest, _ = self.process.communicate(timeout=STOP_TIMEOUT_S)
        assert rest == ""
        assert self.process.returncode == 0, self.log.read_text()

    @property
    def address(self) -> tuple[str, int]:
        """What the ready line names."""
        host, _, port = self.shown.partition("SASL_SSL://")[2].partition(" ")[0].rpartition(":")
        return host, int(port)

    @property
    def command_config(self) -> str:
        """The file that the commands take."""
        return str(self.files / "client.properties")

    def python(self, client: str, text: str | None = None) -> dict[str, Any]:
        """The configuration of a client in Python, as printed."""
        match = re.search(rf"^# {client}\nsecured = (\{{.*?^\}})", text or self.shown, re.MULTILINE | re.DOTALL)
        assert match is not None, self.shown
        configuration: dict[str, Any] = ast.literal_eval(match[1])
        return configuration

    def java(self) -> dict[str, str]:
        """The properties of Java's client, as printed."""
        match = re.search(r"^# Java.*?\n(.*?)\n\n", self.shown, re.MULTILINE | re.DOTALL)
        assert match is not None, self.shown
        return parse_properties(match[1])

    def certificate(self) -> bytes:
        """The certificate (DER) that a new connection is shown, checked with the CA's."""
        context = ssl.create_default_context(cafile=str(self.files / "ca.pem"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        plain = socket.create_connection(self.address, STOP_TIMEOUT_S)
        with context.wrap_socket(plain, server_hostname="localhost") as secured:
            shown = secured.getpeercert(binary_form=True)
        assert shown is not None
        return shown
