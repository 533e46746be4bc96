"""Tables, wide tables, JSON and YAML of the same rows."""

from __future__ import annotations

import json

import pytest
import yaml

from barnabas.terminal.tables import OUTPUTS, show, show_fields, show_rows
from tests.support.cases import for_each

ROWS = [
    {"topic": "a", "partitions": 3, "nodes": [1, 2], "id": None},
    {"topic": "b", "partitions": 12, "nodes": [], "id": "x"},
]


def printed(capsys: pytest.CaptureFixture[str], output: str, **settings: object) -> str:
    show_rows(ROWS, output, columns=("topic", "partitions"), **settings)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_a_table_has_the_chosen_columns_and_a_wide_one_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "table") == "TOPIC  PARTITIONS\na               3\nb              12\n"
    assert printed(capsys, "wide").splitlines() == [
        "TOPIC  PARTITIONS  NODES  ID",
        "a               3  1,2    -",
        "b              12  -      x",
    ]


def test_documents_have_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "json")) == ROWS
    assert yaml.safe_load(printed(capsys, "yaml")) == ROWS


@for_each("text", ["yes", "12", "", "a: b", "é\x1b[2J", "line\nline", "x" * 500])
def test_texts_are_the_same_text_in_both_documents(capsys: pytest.CaptureFixture[str], text: str) -> None:
    for output, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        show({"text": text}, output)
        assert load(capsys.readouterr().out) == {"text": text}


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_rows(capsys: pytest.CaptureFixture[str], output: str) -> None:
    show_rows([], output, columns=("topic",), empty="no topics")
    out, err = capsys.readouterr()
    if output in ("json", "yaml"):
        assert (out.strip(), err) == ("[]", "")
    else:
        assert (out, err) == ("", "no topics\n")


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([{"group": "a\x1b[2Jb"}], "table")
    assert capsys.readouterr().out == "GROUP\na\\x1b[2Jb\n"


def test_fields_of_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    show_fields({"cluster": "x", "broker_count": 1}, "table")
    assert capsys.readouterr().out == "CLUSTER       x\nBROKER-COUNT  1\n"
