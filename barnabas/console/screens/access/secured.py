"""What the screens of security say on a broker that is not secured, and how principals are named."""

from __future__ import annotations

from barnabas.console.console import Call

NOT_SECURED = (
    "Nobody logs in at this listener, so users and ACLs do not restrict anybody here: "
    "'barnabas serve --secure --data-dir DIR' starts a broker with TLS, users and ACLs."
)


def advice(call: Call) -> str:
    """How to get security; empty if clients of this listener say who they are."""
    protocol = call.session.properties.get("security.protocol", "PLAINTEXT").upper()
    return "" if protocol != "PLAINTEXT" else NOT_SECURED


def principal(name: str) -> str:
    """`alice` as `User:alice`; a principal stays as it is."""
    return name if ":" in name else f"User:{name}"
