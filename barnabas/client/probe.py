"""Finds out what answers at an address instead of a Kafka broker that this client can use: TLS, a web server, nothing.

Everything is tried on connections of its own, with a time limit each. Nothing is sent but a TLS handshake and the first
line of an HTTP request.
"""

from __future__ import annotations

import errno
import socket

from barnabas.client.errors import ClientError, Unreachable

HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"
_WEB_ANSWERS = (b"HTTP/", b"<!DOCTYPE", b"<html", b"<HTML")


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, each once. `Unreachable` if the name is not known here."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreachable(f"the name {host} is not known here ({reason.lower()})") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


def connect(host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected socket with this timeout. `Unreachable`, with the reason."""
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        return socket.create_connection((host, port), timeout_s)
    except TimeoutError:
        reason = f"does not accept connections within {timeout_s:g} s: a firewall drops them, or the host is down"
    except ConnectionRefusedError:
        reason = "refuses connections: nothing listens there"
    except OSError as error:
        unreachable = error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH)
        reason = "is not reachable from here: there is no route to it" if unreachable else f"fails: {error.strerror}"
    raise Unreachable(f"{name} {reason}")


def what_listens(host: str, port: int, timeout_s: float) -> str:
    """Describe the server at an address that does not speak Kafka's protocol, as a part of a sentence."""
    try:
        if speaks_tls(host, port, timeout_s):
            return "expects TLS: set security.protocol to SSL or SASL_SSL"
        response = _answer(host, port, HTTP_REQUEST, timeout_s)
    except ClientError as error:
        return f"closes connections ({error})"
    if response is None:
        return f"accepts connections, but does not answer within {timeout_s:g} s"
    if response.startswith(_WEB_ANSWERS):
        return "is a web server (it answers HTTP), not a Kafka broker"
    if response:
        return "answers, but not in Kafka's protocol"
    return (
        "closes connections without an answer: a published port without a broker behind it, or a server of another kind"
    )


def speaks_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether a TLS handshake succeeds, or is refused by TLS; certificates are not checked, as nothing is sent."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with connect(host, port, timeout_s) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host):
                return True
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")
        except OSError:
            return False


def _answer(host: str, port: int, request: bytes, timeout_s: float) -> bytes | None:
    """The first bytes of the answer to some bytes, empty if the connection is closed; None after the time limit."""
    with connect(host, port, timeout_s) as connection:
        try:
            connection.sendall(request)
            return connection.recv(64)
        except TimeoutError:
            return None
        except OSError:
            return b""
