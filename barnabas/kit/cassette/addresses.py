"""Replaces the addresses of brokers in responses with a proxy's, so that clients stay connected to the proxy.

They are the fields `host` and `port` of one struct, wherever a message has such a struct: brokers of Metadata and
DescribeCluster, coordinators, the endpoints that Produce and Fetch name with a new leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from barnabas.wire.codec.fields import StructBase

Address: TypeAlias = tuple[str, int]


_known: dict[type[StructBase], bool] = {}


def has_addresses(kind: type[StructBase]) -> bool:
    """Whether a message, or a struct in it, has an address of a broker."""
    if kind not in _known:
        children = [field.struct_class for field in kind.declared if field.struct_class is not None]
        _known[kind] = _is_address(kind) or any(map(has_addresses, children))
    return _known[kind]


def replace_addresses(struct: Any, replacement: Callable[[Address], Address]) -> None:
    """Replace all addresses in a message; a coordinator that is not there has none."""
    kind = type(struct)
    if _is_address(kind) and struct.host and struct.port > 0:
        struct.host, struct.port = replacement((struct.host, struct.port))
    for field in kind.declared:
        if field.struct_class is not None and has_addresses(field.struct_class):
            value = getattr(struct, field.name)
            for part in value if isinstance(value, list | tuple) else () if value is None else (value,):
                replace_addresses(part, replacement)


def _is_address(kind: type[StructBase]) -> bool:
    return {"host", "port"} <= {field.name for field in kind.declared}
