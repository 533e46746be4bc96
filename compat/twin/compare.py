"""Compares two answers field by field; ids are mapped, known differences are looked up in the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compat.twin import kinds
from compat.twin.allowed import Allowed, allowed_by

NATURAL_KEYS = (
    ("name",), ("topic",), ("topic_name",), ("topic_id",), ("partition_index",), ("partition",), ("index",),
    ("group_id",), ("transactional_id",), ("producer_id",), ("resource_type", "resource_name"), ("api_key",),
    ("node_id",), ("broker_id",), ("member_id",), ("key",), ("user",),
)  # fmt: skip
"""Fields that name an element of a list: elements with the same name are compared, whatever their order."""


UNKNOWN_SERVER_ERROR = -1
"""A handler of Kafka has failed with an exception: its other fields say nothing."""


@dataclass(frozen=True)
class Difference:
    """A place where the answers differ."""

    where: str
    """`Fetch v12 responses.partitions.error_code`: API, version and the path without indexes."""
    kafkas: Any
    ours: Any
    step: int = -1

    @property
    def kind(self) -> str:
        """What stays the same when a sequence is shrunk: the API and the path."""
        api, _, rest = self.where.partition(" v")
        return f"{api} {rest.partition(' ')[2]}"

    def __str__(self) -> str:
        return f"{self.where}: Kafka {_short(self.kafkas)}, Barnabas {_short(self.ours)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


class Comparison:
    """The comparisons of one sequence."""

    def __init__(self, prefix: str, mapping: kinds.Mapping, used: set[Allowed]) -> None:
        self.prefix = prefix
        self.mapping = mapping
        self.used = used
        """The rows of the table that were needed."""
        self._found: list[Difference] = []

    def differences(self, what: str, request: Any, kafkas: Any, ours: Any, step: int = -1) -> list[Difference]:
        """The differences of two values that are not allowed. `what` is `Fetch v12`, or what was listed."""
        found: list[Difference] = []
        self._walk((), kafkas, ours, found)
        api = what.partition(" v")[0]
        left = []
        for difference in found:
            row = allowed_by(api, difference.where, request, difference.kafkas, difference.ours)
            if row is not None:
                self.used.add(row)
            else:
                left.append(Difference(f"{what} {difference.where}", difference.kafkas, difference.ours, step))
        return left

    def _walk(self, path: tuple[str, ...], kafkas: Any, ours: Any, found: list[Difference]) -> None:
        if isinstance(kafkas, dict) and isinstance(ours, dict):
            if kafkas.get("connection") or ours.get("connection"):
                if kafkas != ours:
                    found.append(Difference("(answer)", kafkas.get("connection", kafkas), ours.get("connection", ours)))
                return
            if kafkas.get("error_code") == UNKNOWN_SERVER_ERROR != ours.get("error_code", UNKNOWN_SERVER_ERROR):
                found.append(Difference(".".join((*path, "error_code")), UNKNOWN_SERVER_ERROR, ours["error_code"]))
                return
            for name in [*kafkas, *[name for name in ours if name not in kafkas]]:
                if name in kafkas and name in ours:
                    self._walk((*path, name), kafkas[name], ours[name], found)
                else:
                    absent = "(no such field)"
                    found.append(Difference(".".join((*path, name)), kafkas.get(name, absent), ours.get(name, absent)))
            return
        if isinstance(kafkas, list) and isinstance(ours, list):
            self._walk_lists(path, kafkas, ours, found)
            return
        if not self._same(path[-1] if path else "", kafkas, ours):
            found.append(Difference(".".join(path), kafkas, ours))

    def _walk_lists(self, path: tuple[str, ...], kafkas: list[Any], ours: list[Any], found: list[Difference]) -> None:
        key = _natural_key([*kafkas, *ours])
        if key is None or (
            len(kafkas) == len(ours)
            and all(
                all(self._same(part, one.get(part), other.get(part)) for part in key)
                for one, other in zip(kafkas, ours, strict=True)
            )
        ):
            if len(kafkas) != len(ours):
                found.append(Difference(".".join((*path, "(count)")), kafkas, ours))
            for one, other in zip(kafkas, ours, strict=False):
                self._walk(path, one, other, found)
            return
        by_key: dict[Any, list[Any]] = {}
        for other in ours:
            by_key.setdefault(_key_of(other, key), []).append(other)
        pairs, absent = [], []
        for one in kafkas:
            others = by_key.get(self._our_key_of(one, key))
            if others:
                pairs.append((one, others.pop(0)))
            else:
                absent.append(one)
        extra = [other for others in by_key.values() for other in others]
        if absent or extra:
            found.append(Difference(".".join((*path, "(elements)")), absent, extra))
        else:
            order = [self._our_key_of(one, key) for one in kafkas], [_key_of(other, key) for other in ours]
            found.append(Difference(".".join((*path, "(order)")), *order))
        for one, other in pairs:
            self._walk(path, one, other, found)

    def _our_key_of(self, element: dict[str, Any], key: tuple[str, ...]) -> Any:
        """The key that an element of Kafka's list has in ours."""
        values = zip(key, _key_of(element, key), strict=True)
        return tuple(self.mapping.ours_of(kinds.IDS.get(name, ""), value) for name, value in values)

    def _same(self, name: str, kafkas: Any, ours: Any) -> bool:
        kind = kinds.kind_of(name)
        if kind == "id":
            return self.mapping.agree(kinds.IDS[name], kafkas, ours)
        if kafkas == ours and type(kafkas) is type(ours):
            return True
        if kind == "time":
            return kinds.near_now(kafkas) and kinds.near_now(ours)
        return kind == "address" and bool(kafkas) == bool(ours)


def _natural_key(elements: list[Any]) -> tuple[str, ...] | None:
    first = elements[0] if elements else None
    if not isinstance(first, dict):
        return None
    return next((key for key in NATURAL_KEYS if all(name in first for name in key)), None)


def _key_of(element: dict[str, Any], key: tuple[str, ...]) -> Any:
    return tuple(element.get(name) for name in key)
