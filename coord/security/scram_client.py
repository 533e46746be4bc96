"""The client's side of SCRAM (RFC 5802): of a node at other nodes, and of the command line."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final

from barnabas.coord.security.exchange import InvalidCredentials
from barnabas.coord.security.scram import MAX_ITERATIONS, ScramMechanism, escaped, parse_server_first, xor

_NONCE_BYTES: Final = 18
_NO_BINDING: Final = b64encode(b"n,,").decode()


class ScramClient:
    """One log-in. InvalidCredentials when the server does not know the password, or is another one than it says."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        name: str,
        salted_password: Callable[[bytes, int], bytes],
        random_bytes: Callable[[int], bytes],
        *,
        is_token: bool = False,
        max_iterations: int = MAX_ITERATIONS,
    ) -> None:
        """`salted_password` has the password with a salt and iterations (`ScramMechanism.salted_password`)."""
        self._mechanism = mechanism
        self._salted_password = salted_password
        self._max_iterations = max_iterations
        self._nonce = b64encode(random_bytes(_NONCE_BYTES)).decode()
        extension = ",tokenauth=true" if is_token else ""
        self._bare = f"n={escaped(name)},r={self._nonce}{extension}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._bare}".encode()

    def step(self, token: bytes) -> bytes | None:
        """The answer to a message of the server; None after the last one."""
        if self._signature is None:
            return self._final(token)
        self._verify(token)
        return None

    def _final(self, token: bytes) -> bytes:
        mechanism, server = self._mechanism, parse_server_first(token)
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise InvalidCredentials("the server has another nonce")
        if not mechanism.min_iterations <= server.iterations <= self._max_iterations:
            raise InvalidCredentials(f"the server asks for {server.iterations} iterations")
        salted = self._salted_password(server.salt, server.iterations)
        unproved = f"c={_NO_BINDING},r={server.nonce}"
        message = f"{self._bare},{server},{unproved}".encode()
        proof = xor(mechanism.client_key(salted), mechanism.hmac(mechanism.stored_key(salted), message))
        self._signature = mechanism.hmac(mechanism.server_key(salted), message)
        return f"{unproved},p={b64encode(proof).decode()}".encode()

    def _verify(self, token: bytes) -> None:
        assert self._signature is not None
        try:
            signature = b64decode(token.removeprefix(b"v="), validate=True)
        except ValueError:
            signature = b""
        if not (token.startswith(b"v=") and hmac.compare_digest(signature, self._signature)):
            raise InvalidCredentials("the server does not prove that it has the credential")
