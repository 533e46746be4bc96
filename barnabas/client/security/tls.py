"""A socket with TLS 1.2 or 1.3, used as a plain one: every complete record that has arrived is read at once.

OpenSSL works on memory, the bytes go through the plain socket. So the result of `select` holds for the data as well:
nothing is left behind in OpenSSL. A failed handshake is one sentence.
"""

from __future__ import annotations

import socket
import ssl
from time import monotonic

from barnabas.client.errors import TimedOut, TlsFailed

HOSTNAME_MISMATCH, IP_MISMATCH = 62, 64
EXPIRED, NOT_YET_VALID = 10, 9
NOT_TLS = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_MESSAGE",
    "PACKET_LENGTH_TOO_LONG",
}
CERTIFICATE_WANTED = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")


class TlsSocket:
    """The data of a connected socket, through TLS. `handshake` comes first."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str, address: str) -> None:
        self._plain = plain
        self._address = address
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = host.partition("%")[0]  # an IPv6 address without its zone
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def handshake(self, deadline: float) -> None:
        """Agree on keys and check the broker's certificate. `TlsFailed`, or `TimedOut` at `deadline` (monotonic)."""
        while True:
            try:
                self._tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self._send_alert()
                raise TlsFailed(handshake_trouble(error, self._address)) from None
            self._flush()
            self._plain.settimeout(max(0.001, deadline - monotonic()))
            try:
                data = self._plain.recv(1 << 16)
            except TimeoutError:
                raise TimedOut(f"{self._address} did not answer the TLS handshake in time") from None
            except OSError:
                data = b""
            if not data:
                raise TlsFailed(_closed(self._address))
            self._incoming.write(data)

    def _send_alert(self) -> None:
        """Send the alert that OpenSSL has made, for the log of the broker."""
        try:
            self._flush()
        except OSError:
            pass

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._plain.sendall(self._outgoing.read())

    def certificate_end_s(self) -> float | None:
        """When the broker's certificate ends, seconds since 1970; None if the context does not verify it."""
        certificate = self._tls.getpeercert()
        end = certificate.get("notAfter") if certificate else None
        return float(ssl.cert_time_to_seconds(end)) if isinstance(end, str) else None

    # --- as a socket

    def sendall(self, data: bytes) -> None:
        """As of a socket."""
        self._tls.write(data)
        self._flush()

    def recv(self, size: int) -> bytes:
        """All data that has arrived; empty at the end. BlockingIOError if no record is complete, `TlsFailed`."""
        data = self._plain.recv(size)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        parts = []
        try:
            while part := self._tls.read(size):
                parts.append(part)
        except ssl.SSLWantReadError:
            if not parts:
                raise BlockingIOError from None
        except ssl.SSLError as error:
            if not parts and error.reason not in ("UNEXPECTED_EOF_WHILE_READING", None):
                raise TlsFailed(f"the broker at {self._address} ended TLS: {_alert(error)}") from None
        self._flush()
        return b"".join(parts)

    def fileno(self) -> int:
        """As of a socket."""
        return self._plain.fileno()

    def settimeout(self, seconds: float) -> None:
        """As of a socket."""
        self._plain.settimeout(seconds)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """As of a socket."""
        self._plain.setsockopt(level, name, value)

    def close(self) -> None:
        """Close the plain socket."""
        self._plain.close()


# --- sentences


def handshake_trouble(error: ssl.SSLError, address: str) -> str:
    """Why a handshake failed, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_trouble(error, address)
    reason = error.reason or ""
    if reason in NOT_TLS:
        return _not_tls(address)
    if "ALERT" in reason:
        return f"the broker at {address} refused the TLS handshake: {_alert(error)}"
    if reason in ("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"):
        return f"the broker at {address} has none of the TLS versions of ssl.enabled.protocols"
    return f"the TLS handshake with {address} failed: {reason.lower().replace('_', ' ') or error}"


def _certificate_trouble(error: ssl.SSLCertVerificationError, address: str) -> str:
    message = (error.verify_message or "").rstrip(".")
    if error.verify_code in (HOSTNAME_MISMATCH, IP_MISMATCH):
        return (
            f"the certificate of {address} is for another name ({message[:1].lower()}{message[1:]}): use a name "
            "that it has; an empty ssl.endpoint.identification.algorithm turns this check off"
        )
    if error.verify_code in (EXPIRED, NOT_YET_VALID):
        return f"the certificate of {address} is not valid now: {message}"
    return (
        f"the certificate of {address} is not signed by a CA that is trusted ({message}): "
        "ssl.truststore.location must name a file with its CA"
    )


def _alert(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    alert = reason.rpartition("ALERT_")[2].lower().replace("_", " ")
    if reason.endswith(CERTIFICATE_WANTED):
        return f"{alert}: does it want a certificate of the client, in ssl.keystore.location?"
    if reason.endswith(("UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED")):
        return f"it does not accept the client's certificate ({alert})"
    return alert or str(error)


def _not_tls(address: str) -> str:
    return f"the listener at {address} does not speak TLS: its security.protocol is PLAINTEXT or SASL_PLAINTEXT"


def _closed(address: str) -> str:
    return (
        f"{address} closed the connection in the TLS handshake: is it a listener with TLS? "
        "If it has none, security.protocol is PLAINTEXT or SASL_PLAINTEXT"
    )
