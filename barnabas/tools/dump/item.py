"""The options, items and problems of the readers of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.wire.batches.records import Record

Fields = dict[str, object]
Decoded = tuple[object, object]
"""Key and payload of a record: None, text, or a JSON value."""
Decoder = Callable[["Record"], Decoded]


class UnreadableError(Exception):
    """A file that cannot be dumped; the text is one sentence for the user."""


@dataclass(kw_only=True, slots=True)
class Options:
    """The options of a dump; `print_data` implies `deep`."""

    deep: bool = False
    print_data: bool = False
    decode: Decoder | None = None
    index_sanity_check: bool = False
    verify_index_only: bool = False
    skip_record_metadata: bool = False
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        self.deep = self.deep or self.print_data


class Item:
    """One line of a dump. `fields` have Kafka's names; without `text` the line is `name: value` of each field."""

    __slots__ = ("_text", "fields", "kind")

    def __init__(self, kind: str, fields: Fields, text: str | None = None) -> None:
        self.kind = kind
        self.fields = fields
        self._text = text

    @property
    def text(self) -> str:
        """The line as Kafka's tool prints it."""
        return line(self.fields) if self._text is None else self._text


class Problems:
    """Problems of the files, grouped by the headings that Kafka's tool prints on stderr."""

    def __init__(self) -> None:
        self.by_heading: dict[str, list[str]] = {}

    def add(self, heading: str, detail: str) -> None:
        """Add a detail to a heading."""
        self.by_heading.setdefault(heading, []).append(detail)

    def lines(self) -> Sequence[str]:
        """All headings with their details."""
        return [text for heading, details in self.by_heading.items() for text in (heading, *details)]

    def __bool__(self) -> bool:
        return bool(self.by_heading)


def line(fields: Fields) -> str:
    """`name: value name: value`, with values as Java prints them."""
    return " ".join(f"{name}: {java_text(value)}" for name, value in fields.items())


def java_text(value: object) -> str:
    """A value in the form of Java's toString."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)
