"""The addresses of the console: which it may listen on, and which `Host` and `Origin` its requests may have.

A page of another site can send requests to a loopback address, and with a DNS name of its own that resolves to that
address (DNS rebinding) it could read the answers. So the `Host` of each request must be an IP address, which no DNS
name can stand for, or one of the console's own names, and a request that changes something must come from a page of
the console: its `Origin` is the `Host`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

LOCALHOST: Final = "localhost"
_OF_SAME_ORIGIN: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site: a page of the console, or the user (address bar, bookmark)."""


class ExposedError(ValueError):
    """The console must not listen on an address; the text is one sentence that says what it needs."""


def check_exposure(
    host: str, *, has_tls: bool, has_login: bool, is_in_container: bool = False, is_served: bool = False
) -> None:
    """`ExposedError` if others than this machine reach an address and the console has not both TLS and log-in.

    In a container the address belongs to the container: who reaches it is decided by the port that is published.
    `is_served`: it is started by `serve --console`, where `--secure` brings both.
    """
    host = host.strip("[]")
    if is_loopback(host) or is_in_container or (has_tls and has_login):
        return
    if is_served:
        raise ExposedError(
            f"others can reach {host or 'every address of this machine'}, so the console needs TLS and log-in there: "
            "start with --secure, or let it listen on 127.0.0.1, which 'ssh -L 8080:127.0.0.1:8080' reaches from "
            "elsewhere"
        )
    missing = []
    if not has_tls:
        missing.append("TLS (--tls-cert FILE --tls-key FILE)")
    if not has_login:
        missing.append("log-in (a secured broker, and no user in the console's own configuration, or --login)")
    raise ExposedError(
        f"others can reach {host or 'every address of this machine'}, so the console needs {' and '.join(missing)} "
        "there; without that it listens on 127.0.0.1 only, which 'ssh -L 8080:127.0.0.1:8080' reaches from elsewhere"
    )


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine only. An empty host means every address."""
    if host.lower() == LOCALHOST:
        return True
    address = _ip_address(host)
    return address is not None and address.is_loopback


class AllowedHosts:
    """The names under which the console is addressed: IP addresses, `localhost`, and the names given."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names` are the host it listens on, the DNS names of its certificate, and those of the user."""
        self._names = {LOCALHOST} | {name.lower().rstrip(".") for name in names if name}

    def allows(self, host: str) -> bool:
        """Whether a `Host` header, with or without a port, is the console's."""
        name = host_name(host)
        return name is not None and (name in self._names or _ip_address(name) is not None)


def host_name(host: str) -> str | None:
    """The name in a `Host` header, in lower case and without brackets; None if the header is malformed."""
    if not host or any(character in host for character in "/\\@?#,% \t"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # ValueError if it is no number
    except ValueError:
        return None
    name = parts.hostname
    return name.rstrip(".") if name else None


def is_same_origin(headers: Mapping[str, str], scheme: str, host: str) -> bool:
    """Whether a request comes from a page of the console, or from no page (a script, which has no cookies of users).

    `headers` have names in lower case. A browser sends Origin with every POST; `null` is the origin of a sandbox.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in _OF_SAME_ORIGIN:
        return False
    origin = headers.get("origin")
    return origin is None or origin.lower() == f"{scheme}://{host}".lower()


def local_path(text: str) -> str:
    """A path of the console to go to after the log-in; `/` for everything else, such as the address of another site."""
    is_plain = all("!" <= character <= "~" and character not in '\\"<>' for character in text)
    try:
        parts = urlsplit(text)
    except ValueError:
        return "/"
    is_local = text.startswith("/") and not text.startswith("//") and not parts.netloc and not parts.scheme
    return text if is_plain and is_local else "/"


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
