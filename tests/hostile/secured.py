"""A broker under attack whose clients authenticate: one listener with TLS, SASL or both."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.harness import Victim
from tests.support.memory.secure_broker import ALICE, PLAIN_USERS, SECRET
from tests.support.requests.raw_client import RawClient
from tests.support.security.certificates import Authority

LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TOKEN: Final = f"\0{ALICE}\0{SECRET}".encode()
_AUTHORITY: Final = Authority()


class SecuredVictim(Victim):
    """A broker with one listener of a security protocol."""

    def __init__(
        self,
        data_dir: Path,
        listener: str,
        *,
        config: dict[str, str] | None = None,
        files: int | None = None,
        log_level: str = "info",
        authority: str = "",
    ) -> None:
        """`authority` is the PEM of the certificate's authority, if another process has created it."""
        super().__init__(data_dir, config=config, files=files, log_level=log_level)
        self.listener = listener
        self.authority = authority or _AUTHORITY.pem
        if self.has_tls:
            store = data_dir.with_name(data_dir.name + ".pem")
            trusted = data_dir.with_name(data_dir.name + ".ca.pem")
            self.config |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(trusted),
            }
            if not authority:
                _AUTHORITY.write(trusted)
                _AUTHORITY.sign("victim").write(store)
        if self.has_sasl:
            mechanisms = "PLAIN,SCRAM-SHA-256"
            self.config |= {
                "sasl.enabled.mechanisms": mechanisms,
                f"listener.name.{listener.lower()}.plain.sasl.jaas.config": PLAIN_USERS,
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            }
        if listener != "PLAINTEXT":
            self.config["security.inter.broker.protocol"] = listener
        self._context = ssl.create_default_context(cadata=self.authority)

    @property
    def has_tls(self) -> bool:
        """Whether connections begin with a handshake of TLS."""
        return self.listener.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether clients log in."""
        return self.listener.startswith("SASL")

    def secure(self, client: RawClient, *, logs_in: bool = True) -> None:
        """TLS and the log-in, as the listener has them."""
        if self.has_tls:
            client.socket = self._context.wrap_socket(client.socket, server_hostname="localhost")
        if self.has_sasl and logs_in:
            answers: list[Any] = [
                client(SaslHandshakeRequest(mechanism="PLAIN"), 1),
                client(SaslAuthenticateRequest(auth_bytes=TOKEN), 2),
            ]
            assert [response.error_code for response in answers] == [0, 0], answers

    def hello(self) -> bytes:
        """The first message of a client of TLS."""
        outgoing = ssl.MemoryBIO()
        client = self._context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            return outgoing.read()
        raise AssertionError("a handshake needs an answer")
