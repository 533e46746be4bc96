"""Folding events into the state of a key: `state, event -> state`, over JSON objects.

A fold is pure: the same events in the same order give the same state. None instead of a state removes the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.functions import load

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

State = dict[str, Any]
Fold = Callable[[State | None, State], State | None]
SNAPSHOT = "key STRING, state STRING, version BIGINT"
"""The output of a fold: a row for each key with events in the batch; state is JSON or null."""
STORED = "state STRING, version BIGINT"
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def _smaller(known: Any, new: Any) -> Any:
    return new if known is None or new < known else known


def _larger(known: Any, new: Any) -> Any:
    return new if known is None or new > known else known


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "count": lambda known, _: (known or 0) + 1,
    "sum": lambda known, new: (known or 0) + new,
    "min": _smaller,
    "max": _larger,
    "first": lambda known, new: new if known is None else known,
    "last": lambda _, new: new,
}
"""Operations of a state's field on an event's field; events without the field are skipped."""


def fold_of(fields: Mapping[str, str], function: str, types: Mapping[str, str] | None = None) -> Fold:
    """The fold that a job's file describes: `field = "operation(column)"`, or a Python function.

    `types`: the columns' types, to check them. MistakeError for an invalid description.
    """
    if function:
        return load(function)
    steps = {name: _step(name, text) for name, text in fields.items()}
    if types is not None:
        _check_columns(steps, types)

    def fold(state: State | None, event: State) -> State:
        state = dict(state or {})
        for name, (operation, column) in steps.items():
            if not column or event.get(column) is not None:
                state[name] = OPERATIONS[operation](state.get(name), event.get(column))
        return state

    return fold


def _step(name: str, text: str) -> tuple[str, str]:
    match = re.fullmatch(r"\s*(\w+)\s*\(\s*(\w*)\s*\)\s*", text)
    if match is None or match[1] not in OPERATIONS:
        known = ", ".join(f"{operation}(column)" for operation in OPERATIONS)
        raise MistakeError(f"[state.fields] {name} is one of {known}, not {text!r}")
    if not match[2] and match[1] != "count":
        raise MistakeError(f"[state.fields] {name}: {match[1]} needs a column, as in {match[1]}(amount)")
    return match[1], match[2]


def _check_columns(steps: Mapping[str, tuple[str, str]], types: Mapping[str, str]) -> None:
    for name, (operation, column) in steps.items():
        if column and column not in types:
            known = ", ".join(types)
            raise MistakeError(f"[state.fields] {name}: there is no column {column}; there are {known}")
        if operation == "sum" and not types[column].startswith(NUMBERS):
            raise MistakeError(f"[state.fields] {name}: sum needs a number, and {column} is {types[column]}")
        if operation in ("min", "max") and types[column].startswith(("struct", "map", "boolean", "variant")):
            raise MistakeError(
                f"[state.fields] {name}: {column} is {types[column]}, which does not support {operation}"
            )


class Folding(StatefulProcessor):
    """Keeps the state of each key in Spark's state store, as JSON, with its number of events."""

    def __init__(self, fields: Mapping[str, str], function: str) -> None:
        self._fields = dict(fields)
        self._function = function

    def init(self, handle: StatefulProcessorHandle) -> None:
        """On an executor, before the first rows."""
        self._fold = fold_of(self._fields, self._function)
        self._stored = handle.getValueState("state", STORED)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Fold the events of one key in this batch, by `order`, then by `position`; one row out."""
        import pandas as pd

        stored = self._stored.get() if self._stored.exists() else None
        text, version = stored or (None, 0)
        state = None if text is None else json.loads(text)
        version = int(version)
        events = pd.concat(list(rows)).sort_values(["order", "position"], na_position="first", ignore_index=True)
        for event in events["event"]:
            state = self._fold(state, json.loads(event))
            version += 1
        text = None if state is None else json.dumps(state, sort_keys=True)
        self._stored.update((text, version))
        yield pd.DataFrame({"key": [key[0]], "state": [text], "version": [version]})

    def close(self) -> None:
        """Nothing to close."""
