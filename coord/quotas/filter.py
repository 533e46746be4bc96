"""DescribeClientQuotas (48): the quotas that a filter selects. Source: Kafka 4.4 `ClientQuotasImage`. KIP-546.

Every component of the filter must match: an exact name, the default of a type, or any name of a type. A strict filter
selects no entity that has other types besides; a strict one without components selects nothing.
"""

from __future__ import annotations

from typing import Final

from barnabas.coord.quotas.keys import ENTITY_TYPES, IP, Entity
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.quotas import ComponentData, DescribeClientQuotasRequest

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
"""The kinds of components; the last one matches any name, the default included."""


class QuotaFilter:
    """The filter of a DescribeClientQuotas request."""

    __slots__ = ("_any", "_names", "_size", "_strict")

    def __init__(self, request: DescribeClientQuotasRequest) -> None:
        """KafkaError for a filter that there cannot be."""
        self._names: dict[str, str | None] = {}
        self._any: set[str] = set()
        self._strict = request.strict
        for component in request.components:
            self._add(component)
        self._size = len(self._names) + len(self._any)
        if IP in self._names.keys() | self._any and self._size > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component.",
            )

    def _add(self, component: ComponentData) -> None:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in self._names or kind in self._any:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in _NAMES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
        name = _NAMES[component.match_type]
        if component.match_type == EXACT:
            if component.match is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Request specified {name}, but set match string to null.")
        elif component.match is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string.")
        if component.match_type == SPECIFIED:
            self._any.add(kind)
        else:
            self._names[kind] = component.match

    def selects(self, entity: Entity) -> bool:
        """Whether the quotas of an entity are asked for."""
        if self._strict and (len(entity) != self._size or not self._size):
            return False
        names = dict(entity)
        return self._any <= names.keys() and all(
            kind in names and names[kind] == name for kind, name in self._names.items()
        )


_NAMES: Final = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}
