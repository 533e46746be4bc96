"""TLS over one non-blocking socket, without waiting: it decrypts received bytes, and encrypted ones wait to be sent.

The records pass through memory (`ssl.MemoryBIO`), not through OpenSSL's own use of the socket. Measured on one core of
a 2-core machine with AES-256-GCM: OpenSSL on the socket 0.70 s of CPU per GB received (it makes two system calls per
record of 16 KB) and 0.36 to 0.43 s sent; memory 0.60 s received and 0.39 to 0.47 s sent. A small request is one system
call in place of three. So nothing is hidden from the poller either: bytes that wait inside OpenSSL are `has_unread`.
Kernel TLS (SSL_OP_ENABLE_KTLS) could not be measured: it needs OpenSSL on the socket, Python 3.12 and a kernel with
CONFIG_TLS, which was not there (`tcp_available_ulp` without `tls`).
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

from barnabas.wire.errors import ProtocolError

CIPHER_BYTES: Final = 64 * 1024
"""Encrypted bytes that are received at a time."""
FILLS: Final = 8
"""How often encrypted bytes are received in a call before data is among them; the others wait for the next turn."""
SUSPECT_BYTES: Final = 1024
"""Encrypted bytes that are received at a time before there was data, and after a change of keys until there is some."""
ANSWER_BYTES: Final = 512
"""The most bytes sent in answer to one receive, outside of requests: 18 changes of keys."""
UNREAD_BYTES: Final = 256 * 1024
"""A peer that leaves more encrypted bytes than this unread may not change its keys."""
_NOTHING: Final = memoryview(b"")
_HEADER_BYTES: Final = 5
"""Of a record: its type, two bytes of version, two of its length, which is 16 KB and 256 bytes at most."""


class TlsStream:
    """The TLS side of a socket; its owner calls `handshake` until that is done."""

    __slots__ = (
        "_has_ended",
        "_hello",
        "_incoming",
        "_is_suspect",
        "_outgoing",
        "_sealed",
        "_socket",
        "has_unread",
        "is_open",
        "tls",
    )

    def __init__(
        self,
        plain: socket.SocketType,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
    ) -> None:
        """`server_hostname` is the server that a client wants to reach; it is checked if the context checks names."""
        self._socket = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        self.is_open = False
        """Whether the handshake is done."""
        self.has_unread = False
        """Whether received bytes may be left that the poller does not report."""
        self._has_ended = False
        self._is_suspect = True  # whether there was no data yet, or none after a change of keys
        self._sealed = _NOTHING
        self._hello = b""

    @property
    def has_sealed(self) -> bool:
        """Whether encrypted bytes wait to be sent."""
        return bool(self._sealed)

    def handshake(self, scratch: memoryview) -> None:
        """Go on with the handshake until it is done. BlockingIOError while the peer's part is missing.

        An ssl.SSLError, also for a peer that closes the connection, ends it: the alert for the peer has been sent then.
        """
        while not self.is_open:
            self.took_step(self.step())
            if not self.is_open:
                self.receive(scratch)

    def step(self) -> ssl.SSLError | None:
        """Do what the received bytes of the handshake allow; the outcome is for `took_step`.

        May be called in a thread, if nothing else uses the stream meanwhile: OpenSSL computes without the interpreter.
        """
        try:
            self.tls.do_handshake()
        except ssl.SSLError as error:
            return error
        return None

    def took_step(self, outcome: ssl.SSLError | None) -> None:
        """Send what a step has written. The outcome is raised if it ends the handshake."""
        if outcome is None:
            self.is_open = self.has_unread = True  # requests may have come with the end of the handshake
        self._send_pending()
        if outcome is not None and not isinstance(outcome, ssl.SSLWantReadError):
            raise outcome

    def receive_hello(self, scratch: memoryview) -> None:
        """Receive the first record of the peer, a hello, without looking at it. BlockingIOError while it is incomplete.

        An impossible length, and the end of the stream, are left to the first step.
        """
        while True:
            hello = self._hello
            if len(hello) == _HEADER_BYTES and not hello[3] >> 7:
                if self._incoming.pending >= _HEADER_BYTES + int.from_bytes(hello[3:], "big"):
                    return
            elif len(hello) == _HEADER_BYTES:
                return
            count = self.receive(scratch[:SUSPECT_BYTES])
            if not count:
                return
            self._hello = (hello + bytes(scratch[: min(count, _HEADER_BYTES)]))[:_HEADER_BYTES]

    def _send_pending(self) -> None:
        self._take_outgoing()
        try:
            self.send()
        except BlockingIOError:
            pass  # it is sent when the socket is writable

    def _take_outgoing(self) -> None:
        if self._outgoing.pending:
            encrypted = self._outgoing.read()
            self._sealed = memoryview(bytes(self._sealed) + encrypted if self._sealed else encrypted)

    def receive(self, scratch: memoryview) -> int:
        """Receive encrypted bytes; 0 at the end of the stream. BlockingIOError if there are none."""
        count = self._socket.recv_into(scratch)
        if count:
            self._incoming.write(scratch[:count])
        else:
            self._incoming.write_eof()
        return count

    def recv_into(self, buffer: memoryview, scratch: memoryview) -> int:
        """Receive into `buffer` after the handshake; 0 at the end of the stream. BlockingIOError if nothing is there.

        `scratch` holds encrypted bytes during the call.
        """
        for _ in range(FILLS):
            count = self._decrypt(buffer)
            if self._outgoing.pending:
                self._answer_changes()
            if count:
                self._is_suspect = False
                return count
            if self._has_ended:
                return 0
            self.receive(scratch[:SUSPECT_BYTES] if self._is_suspect else scratch)
        raise BlockingIOError

    def _answer_changes(self) -> None:
        """Answer changes of keys. ProtocolError for a peer that does nothing else: each costs it 27 bytes, and 10 µs
        here."""
        if self._outgoing.pending > ANSWER_BYTES or len(self._sealed) > UNREAD_BYTES:
            raise ProtocolError("The client changes its TLS keys again and again")
        self._is_suspect = True
        self._send_pending()

    def _decrypt(self, buffer: memoryview) -> int:
        """Decrypt records that have arrived; each is 16 KB at most."""
        count, size = 0, len(buffer)
        try:
            while count < size:
                read = self.tls.read(size - count, buffer[count:])
                if not read:
                    self._has_ended = True
                    break
                count += read  # type: ignore[operator]  # a number, since there is a buffer
        except ssl.SSLWantReadError:
            self.has_unread = False
            return count
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._has_ended = True
        self.has_unread = True
        return count

    def seal(self, data: bytes | memoryview) -> None:
        """Encrypt bytes, which may be changed afterwards."""
        self.tls.write(data)
        self._take_outgoing()

    def send(self) -> None:
        """Send encrypted bytes. BlockingIOError when the socket's buffer is full."""
        while self._sealed:
            self._sealed = self._sealed[self._socket.send(self._sealed) :]

    def close(self) -> None:
        """Close the socket, after a close_notify if it can be sent at once."""
        self.tell_end()
        self._socket.close()

    def tell_end(self) -> None:
        """Send a close_notify to the peer, if that is possible at once."""
        if self.is_open and not self._sealed:
            try:
                self.tls.unwrap()
            except (ssl.SSLError, OSError, ValueError):
                pass  # it has written the close_notify, and would wait for the peer's
            try:
                self._send_pending()
            except OSError:
                pass


def failure_reason(error: OSError) -> str:
    """Why a handshake has failed, in words."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not isinstance(error, ssl.SSLError):
        return "the peer has closed the connection during the handshake"
    if isinstance(error, ssl.SSLCertVerificationError):
        why = _VERIFICATIONS.get(error.verify_code, error.verify_message)
        return f"the certificate of the peer is not valid: {why}"
    reason = (error.reason or str(error)).upper()
    return _REASONS.get(reason, reason.lower().replace("_", " "))


_VERIFICATIONS: Final = dict.fromkeys(
    (18, 19, 20, 21), "it is not signed by a CA of ssl.truststore.location or ssl.truststore.certificates"
)
"""By OpenSSL's X509_V_ERR_: self-signed, self-signed in the chain, no issuer, no issuer of the only certificate."""
_REASONS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the certificate of this node (alert unknown ca)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not accept the certificate of this node, for its CA, its names "
    "or its dates (alert certificate unknown)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer does not accept the certificate of this node: it has expired, or does "
    "not hold yet (alert certificate expired)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept the certificate (alert bad certificate)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer has sent no certificate, but ssl.client.auth=required",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a certificate of this node (alert certificate required)",
    "NO_SHARED_CIPHER": "there is no cipher suite that both sides allow (ssl.cipher.suites)",
    "UNSUPPORTED_PROTOCOL": "there is no version of TLS that both sides allow (ssl.enabled.protocols)",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS on this port",
}
