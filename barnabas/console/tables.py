"""Tables are sorted, searched and paged on the server: a query's fields, and the page of rows that they select."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from barnabas.console.values import BadInput

Row = TypeVar("Row")
Other = TypeVar("Other")
SIZE = 50
SIZE_MAX = 1000


@dataclass(frozen=True, kw_only=True)
class TableQuery:
    """The fields that every table's query has; a query dataclass of a table extends it."""

    sort: str = ""
    """The name of a column; empty: the table's own order."""
    desc: bool = False
    search: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """Rows whose text contains this, in any case."""
    page: Annotated[int, msgspec.Meta(ge=1)] = 1
    size: Annotated[int, msgspec.Meta(ge=1, le=SIZE_MAX)] = SIZE
    """Rows a page."""


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of a table's rows."""

    rows: list[Row]
    matched: int
    """The rows that the search selects."""
    total: int
    """All rows."""
    page: int
    pages: int
    size: int
    sort: str
    desc: bool
    search: str

    def map(self, change: Callable[[Row], Other]) -> Page[Other]:
        """The page with other rows: to add to the shown rows what is expensive to find."""
        rows = [change(row) for row in self.rows]
        return Page(rows, self.matched, self.total, self.page, self.pages, self.size, self.sort, self.desc, self.search)


def paged(
    rows: Iterable[Row],
    query: TableQuery,
    *,
    columns: Sequence[str],
    search: Callable[[Row], str] | None = None,
    sort: str = "",
) -> Page[Row]:
    """The page that `query` asks for. `columns` are the attributes of a row that it may be sorted by, `sort` is the
    default; `search` gives the text of a row that is searched. A page after the last one is the last one.
    """
    every = list(rows)
    needle = query.search.casefold()
    if needle and search is not None:
        matched = [row for row in every if needle in search(row).casefold()]
    else:
        matched = every
    column = query.sort or sort
    if column:
        if column not in columns:
            raise BadInput(f"sort: there is no column {column!r}; there are {', '.join(columns)}")
        matched = sorted(matched, key=lambda row: _key(getattr(row, column)), reverse=query.desc)
    pages = max(1, -(-len(matched) // query.size))
    number = min(query.page, pages)
    shown = matched[(number - 1) * query.size : number * query.size]
    return Page(shown, len(matched), len(every), number, pages, query.size, column, query.desc, query.search)


def _key(value: Any) -> tuple[bool, Any]:
    """Unknown values come first; lists are sorted by their lengths."""
    if isinstance(value, list | dict):
        value = len(value)
    return value is not None, value.casefold() if isinstance(value, str) else value
