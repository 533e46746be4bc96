"""The principal of a connection, once it is authenticated (KIP-371, KIP-590).

Names and types are compared exactly, upper and lower case included. Source: Kafka 4.4 `KafkaPrincipal`,
`DefaultKafkaPrincipalBuilder`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.headers import DefaultPrincipalData

USER_TYPE: Final = "User"
_VERSION_BYTES: Final = 2


class KafkaPrincipal(NamedTuple):
    """A principal: nearly always a user."""

    type: str
    name: str
    is_token_authenticated: bool = False
    """Whether the connection was authenticated with a delegation token, by which no further token can be made."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    def to_bytes(self) -> bytes:
        """The principal as a broker forwards it: version, then DefaultPrincipalData."""
        version = DefaultPrincipalData.max_version
        data = DefaultPrincipalData(type=self.type, name=self.name, token_authenticated=self.is_token_authenticated)
        return version.to_bytes(_VERSION_BYTES, "big") + data.encode(version)

    @classmethod
    def from_bytes(cls, data: bytes | None) -> KafkaPrincipal:
        """The principal of a forwarded request. ProtocolError if these are not the bytes of one."""
        if data is None or len(data) < _VERSION_BYTES:
            raise ProtocolError("no version")
        version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
        if not DefaultPrincipalData.min_version <= version <= DefaultPrincipalData.max_version:
            raise ProtocolError(f"unknown version {version}")
        principal = DefaultPrincipalData.decode(bytes(data[_VERSION_BYTES:]), version)
        return cls(principal.type, principal.name, principal.token_authenticated)


ANONYMOUS: Final = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
"""The principal of clients on a listener without authentication."""
