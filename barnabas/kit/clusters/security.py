"""Clusters that want a log-in: `open(auth="scram", tls=True)` gives them a listener, a user and a certificate.

The CA and the certificate are made once in a process, in a directory that is removed with it. The answer has all the
settings of a client, so that the fixtures of clients, and tests in other languages, need no configuration of their own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Final

import trio

from barnabas.broker.config.options import Secured
from barnabas.kit.errors import ControlError

USER: Final = "test"
PASSWORD: Final = "test-secret"  # noqa: S105 - of a broker on the loopback that a test starts
MECHANISMS: Final = {
    "plain": "PLAIN",
    "scram": "SCRAM-SHA-512",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram-sha-512": "SCRAM-SHA-512",
}
HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Security:
    """How the clients of one cluster connect."""

    def __init__(self, mechanism: str | None, certificates: Certificates | None) -> None:
        """Without a mechanism clients do not log in; `certificates` are for TLS."""
        self.mechanism = mechanism
        self._certificates = certificates
        self.protocol = ("SASL_" if mechanism else "") + ("SSL" if certificates else "PLAINTEXT")

    def keys(self, host: str) -> dict[str, str]:
        """The config keys of a broker with one listener on this host."""
        keys = {"listeners": f"{self.protocol}://{host}:0"}
        if self._certificates is not None:
            keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._certificates.server)}
        if self.mechanism is not None:
            keys["sasl.enabled.mechanisms"] = self.mechanism
        if self.mechanism == "PLAIN":
            users = f'{_PLAIN} required user_{USER}="{PASSWORD}";'
            keys[f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config"] = users
        return keys

    @property
    def secured(self) -> Secured | None:
        """The SCRAM user, which the broker creates at its start."""
        if self.mechanism in {None, "PLAIN"}:
            return None
        return Secured({USER: PASSWORD}, str(self.mechanism), lambda _clients, _address: "")

    def to_json(self) -> dict[str, str]:
        """The settings that a client needs."""
        settings = {"protocol": self.protocol}
        if self.mechanism is not None:
            settings |= {"mechanism": self.mechanism, "username": USER, "password": PASSWORD}
        if self._certificates is not None:
            settings["ca"] = str(self._certificates.ca)
        return settings


class Certificates:
    """A CA and the certificate of all clusters of this process."""

    def __init__(self) -> None:
        from barnabas.tools.secure.authority import Authority

        authority = Authority.new("Barnabas CA of tests")
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-tls-"))
        self.ca, self.server = self._folder / "ca.pem", self._folder / "server.pem"
        self.ca.write_text(authority.pem, encoding="ascii")
        self.server.write_text(authority.broker("localhost", HOSTS), encoding="ascii")

    async def remove_at_end(self) -> None:
        """Wait to be cancelled, and remove the files."""
        try:
            await trio.sleep_forever()
        finally:
            rmtree(self._folder, ignore_errors=True)


def mechanism_named(auth: str | None) -> str | None:
    """The mechanism of SASL that `auth` stands for. ControlError if there is none."""
    if auth is None:
        return None
    try:
        return MECHANISMS[auth.lower()]
    except KeyError:
        raise ControlError(f"auth must be {', '.join(MECHANISMS)}, not {auth!r}") from None
