"""A declaration of columns (`id BIGINT NOT NULL, at TIMESTAMP`) as far as it can be read without Spark.

Spark's parser has the last word (`schema.read_fields`); this one finds the usual mistake, a misspelt type, before
Spark is started.
"""

from __future__ import annotations

import re

from barnabas.terminal.suggestion import suggestion

TYPES = (
    "BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE",
    "DECIMAL", "DEC", "NUMERIC", "STRING", "CHAR", "CHARACTER", "VARCHAR", "BINARY", "DATE", "TIMESTAMP",
    "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL", "ARRAY", "MAP", "STRUCT", "VARIANT", "VOID",
)  # fmt: skip
"""The names of Spark SQL's types."""


def column_types(fields: str) -> dict[str, str]:
    """The declared columns and types; without those that cannot be read."""
    declared = [re.match(r"\s*(`[^`]+`|[^\s:]+)\s*:?\s+(.+)", text, re.DOTALL) for text in _top_level(fields)]
    columns = {part[1].strip("`"): part[2] for part in declared if part is not None}
    return {
        name: re.sub(r"(?i)\s+(NOT\s+NULL|COMMENT\s.*)$", "", kind).strip().upper() for name, kind in columns.items()
    }


def unknown_type(fields: str) -> str | None:
    """A sentence about the first column whose type does not exist; None if there is none that can be found here."""
    if "'" in fields or '"' in fields:  # a comment may have commas
        return None
    for name, kind in column_types(fields).items():
        first = re.match(r"\w*", kind)
        if first and first[0] and first[0] not in TYPES:
            return f"{name} has the type {first[0]}, which Spark SQL does not have{suggestion(first[0], TYPES)}"
    return None


def _top_level(fields: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for char in fields:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts
