"""How many log-ins a listener has seen, under the names of Kafka's metrics (`socket-server-metrics`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogIns:
    """Counts since the start: of SASL, and of handshakes in which clients authenticate with a certificate."""

    successful_authentications: int = 0
    failed_authentications: int = 0
    """Failed handshakes of TLS are among them, as in Kafka."""
    successful_reauthentications: int = 0
    failed_reauthentications: int = 0
    expired_connections_killed: int = 0
    """Connections whose client sent another request after the end of its session."""
