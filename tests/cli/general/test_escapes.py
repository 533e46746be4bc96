"""Format strings and escapes, with the syntax of kcat and rpk."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.options.escapes import compile_format, unescape
from barnabas.cli.records.consume import json_line
from barnabas.wire.batches.records import Record
from tests.support.cases import for_each

RECORD = Record(7, 1763715600000, b"key", b"value", [("a", b"1"), ("b", None)])
TOMBSTONE = Record(8, -1, b"\xff", None, [])
PLACE = ("orders", 2)


@for_each(
    ("text", "printed"),
    [
        (r"%t %p %o %k %v %h %T\n", b"orders 2 7 key value a=1,b=NULL 1763715600000\n"),
        (r"%s/%d", b"value/1763715600000"),
        (r"%K %S %V", b"3 5 5"),
        (r"100%% \x41\t\\n\0", b"100% A\t\\n\0"),
        ("", b""),
        ("plain é", "plain é".encode()),
        ("%t\n", b"orders\n"),
    ],
)
def test_format(text: str, printed: bytes) -> None:
    assert compile_format(text)(PLACE, RECORD) == printed


def test_null_prints_nothing_and_has_length_minus_one() -> None:
    assert compile_format("[%v] %S %K")(PLACE, TOMBSTONE) == b"[] -1 1"


@for_each("text", ["%x", "%", "50%", "%%%", r"\q", "\\", r"\x4"])
def test_unknown_verb_or_escape_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter, match="knows no"):
        compile_format(text)


def test_unescape() -> None:
    assert unescape(r"\t|\x00\\", "-K") == b"\t|\x00\\"


def test_json_line_tells_text_bytes_and_null_apart() -> None:
    assert json_line(PLACE, RECORD) == (
        b'{"topic": "orders", "partition": 2, "offset": 7, "timestamp": 1763715600000, "key": "key", "value": "value", '
        b'"headers": [{"name": "a", "value": "1"}, {"name": "b", "value": null}]}\n'
    )
    assert json_line(PLACE, TOMBSTONE) == (
        b'{"topic": "orders", "partition": 2, "offset": 8, "timestamp": -1, "key_base64": "/w==", "value": null}\n'
    )
