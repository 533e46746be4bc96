"""Avro by fastavro: values of a schema as plain values and back."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from barnabas.console.messages.contents.plain import plain_value

MOST_ROWS = 1000
"""Of a container file."""


class AvroSchema:
    """A parsed schema. ValueError with a sentence."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        """`references` are texts of schemas whose names this one uses, by name, each behind its own references."""
        import fastavro.schema

        known: dict[str, Any] = {}
        try:
            for referred in (references or {}).values():
                fastavro.schema.parse_schema(json.loads(referred), named_schemas=known)
            self.parsed = fastavro.schema.parse_schema(json.loads(text), named_schemas=known)
        except RecursionError:
            raise ValueError("not an Avro schema: it is nested too deep") from None
        except Exception as error:  # fastavro has exceptions of many types for wrong schemas
            raise ValueError(f"not an Avro schema: {_reason(error)}") from None

    def decode(self, data: bytes, start: int = 0) -> Any:
        """The plain value of bytes from `start` on. ValueError with a sentence."""
        import fastavro

        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            value = fastavro.schemaless_reader(stream, self.parsed, None)
        except RecursionError:
            raise
        except Exception as error:  # as above
            raise ValueError(_reason(error)) from None
        rest = len(data) - stream.tell()
        if rest:
            raise ValueError(f"{rest} bytes are left behind the value")
        return plain_value(value)

    def encode(self, content: Any) -> bytes:
        """The bytes of a plain value. ValueError with a sentence."""
        import fastavro

        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, self.parsed, content, strict=True)
        except Exception as error:  # as above
            raise ValueError(f"it does not fit the schema: {_reason(error)}") from None
        return stream.getvalue()


def read_container(stream: io.BytesIO) -> Any:
    """The first rows of a container file. ValueError with a sentence."""
    import fastavro

    try:
        return [plain_value(row) for row in islice(fastavro.reader(stream), MOST_ROWS)]
    except RecursionError:
        raise
    except Exception as error:  # as above
        raise ValueError(_reason(error)) from None


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
