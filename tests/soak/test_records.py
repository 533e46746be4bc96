"""The record: a line for each call, which a kill can only cut off at its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.soak.fakes import call
from tests.soak.machine import load_now, this_machine
from tests.soak.records import Records, commit, open_failures, product_version


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    calls = [call(day=1, counts={"things": 5}), call(day=2, code=-1)]
    records = Records(tmp_path / "proof.jsonl")
    for entry in calls:
        records.add(entry)
    assert records.calls == Records(tmp_path / "proof.jsonl").calls == calls


def test_a_line_that_was_cut_off_is_forgotten_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "proof.jsonl"
    records = Records(path)
    records.add(call(day=1))
    records.add(call(day=2))
    path.write_text(path.read_text()[:-20])
    again = Records(path)
    assert again.calls == [call(day=1)]
    again.add(call(day=3))
    assert Records(path).calls == [call(day=1), call(day=3)]


def test_any_other_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    path = tmp_path / "proof.jsonl"
    Records(path).add(call())
    path.write_text("<<<<<<< ours\n" + path.read_text())
    with pytest.raises(ValueError, match=r"proof\.jsonl, line 1: "):
        Records(path)


def test_a_failure_is_open_until_its_command_has_passed() -> None:
    calls = [call("a", day=1, code=1, command="x"), call("a", day=2, command="y"), call("b", day=3, code=1)]
    assert open_failures(calls) == [calls[0], calls[2]]
    assert open_failures([*calls, call("a", day=4, command="x")]) == [calls[2]]
    assert open_failures([call("a", day=2, code=1), call("a", day=1)]) == [
        call("a", day=2, code=1),
    ]


def test_the_version_is_a_hash_of_the_source_of_the_product(tmp_path: Path) -> None:
    (tmp_path / "wire").mkdir()
    (tmp_path / "wire/a.py").write_text("A = 1\n")
    first = product_version(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", first)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/b.py").write_text("B = 1\n")
    assert product_version(tmp_path) == first
    (tmp_path / "wire/a.py").write_text("A = 2\n")
    assert product_version(tmp_path) != first


def test_a_folder_that_is_no_checkout_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit(tmp_path) == ""


def test_the_machine_is_measured() -> None:
    machine = this_machine()
    assert machine.cores >= 1
    assert machine.cpu
    assert machine.calibration is not None
    assert machine.calibration > 0
    assert load_now() >= 0
