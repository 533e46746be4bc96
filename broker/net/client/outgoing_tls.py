"""A connection with TLS that this node opens to another one: it is open for its user when the handshake is done."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.net.client.outgoing import TURN_BYTES, OutgoingSocket
from barnabas.broker.net.polling.poller import READ, WRITE
from barnabas.broker.net.tls_stream import CIPHER_BYTES, TlsStream, failure_reason

if TYPE_CHECKING:
    import socket

    from barnabas.broker.net.client.outgoing import Connect, Outgoing, Peer, Transport
    from barnabas.broker.net.polling.poller import Poller

PIECE_BYTES: Final = 64 * 1024
"""Bytes that are encrypted at a time."""


class ClientIdentity(Protocol):
    """The current TLS settings of this node towards other nodes."""

    @property
    def client_context(self) -> ssl.SSLContext:
        """Certificates, versions and cipher suites; whether the name of the other node is checked."""


class OutgoingTls(OutgoingSocket):
    """A socket with TLS that was opened by this node."""

    __slots__ = ("_host", "_identity", "_scratch", "_stream")

    def __init__(
        self,
        poller: Poller,
        peer: Peer,
        closed: Callable[[OutgoingSocket], None],
        identity: ClientIdentity,
        host: str,
        scratch: memoryview,
    ) -> None:
        """`host` is the name or address that the certificate must be for; `scratch` holds encrypted bytes in a call."""
        super().__init__(poller, peer, closed)
        self._identity = identity
        self._host = host
        self._scratch = scratch
        self._stream: TlsStream | None = None

    def _finish_connect(self, connecting: socket.socket) -> bool:
        if self._stream is None:
            self._check_connected(connecting)
            context = self._identity.client_context
            self._stream = TlsStream(connecting, context, server_side=False, server_hostname=self._host)
        try:
            self._stream.handshake(self._scratch)
        except BlockingIOError:
            raise
        except OSError as error:
            raise _failure(error) from error
        return self._tell_opened()

    def _receive(self) -> None:
        stream = self._stream
        assert stream is not None
        budget = TURN_BYTES
        while (budget > 0 or stream.has_unread) and self._socket is not None and self._peer is not None:
            space = self._peer.space()
            try:
                count = stream.recv_into(space, self._scratch)
            except ssl.SSLError as error:
                raise _failure(error) from error
            space.release()
            if not count:
                raise OSError(errno.ECONNRESET, "the other node has closed the connection")
            budget -= count
            self._peer.filled(count)

    def _flush(self) -> None:
        stream, out = self._stream, self._out
        assert stream is not None
        stream.send()
        while out and self._socket is not None:
            pieces, size = [], 0
            while out and size < PIECE_BYTES:
                pieces.append(out.popleft())
                size += len(pieces[-1])
            stream.seal(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            stream.send()

    @property
    def _has_output(self) -> bool:
        return bool(self._out) or (self._stream is not None and self._stream.has_sealed)

    def _watch(self) -> None:
        if self._socket is None or self._stream is None:
            return
        interest = READ | WRITE if self._has_output else READ
        if interest != self._interest:
            self._interest = interest
            self._poller.modify(self._socket.fileno(), interest, self._ready)

    def _release(self) -> None:
        if self._stream is not None and self._socket is not None:
            self._stream.tell_end()
        self._stream = None
        super()._release()


def tls_connect(outgoing: Outgoing, identity: ClientIdentity) -> Connect:
    """Return a function that starts to connect with TLS (`outgoing.Connect`)."""
    scratch = memoryview(bytearray(CIPHER_BYTES))

    def connect(host: str, port: int, peer: Peer) -> Transport:
        assert outgoing.poller is not None
        opened = OutgoingTls(outgoing.poller, peer, outgoing.forget, identity, host, scratch)
        return outgoing.start(host, port, opened)

    return connect


def _failure(error: OSError) -> OSError:
    return OSError(errno.EPROTO, f"the TLS handshake failed: {failure_reason(error)}")
