"""docs/evidence/proof.md follows from the record: figures, newest proofs, open failures."""

from __future__ import annotations

import json

import pytest

from tests.soak import __main__ as command
from tests.soak.fakes import call, part
from tests.soak.page import PAGE, page, total
from tests.soak.parts import FIGURES, all_parts
from tests.soak.records import FILE, Records
from tests.soak.run import shown

STATES = part("crash-states")
(FIGURE,) = [figure for figure in FIGURES if figure.name == "crash states"]


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(Records().calls, all_parts()), (
        "docs/evidence/proof.md is stale: run `python -m tests.soak --page-only`"
    )


def test_the_figures_of_the_old_ledger_are_kept() -> None:
    old = [call for call in Records().calls if call.version == "9f17af0b0bed"]
    assert len(old) == 33
    sums = {figure.name: total(figure, old) for figure in FIGURES}
    assert sums["acknowledged records, none lost"] == 401_549 + 447_631 + 205_398 + 500_334 + 310_054
    assert (sums["crash states"], sums["exactly-once transactions"]) == (4_000, 2_933)
    assert (sums["mutated requests"], sums["absurd requests"]) == (90_000, 10_000)


def test_figures_are_sums_of_calls_that_passed_on_the_newest_version_and_on_all() -> None:
    calls = [
        call("crash-states", day=3, counts={"states": 2000}, version="new", commit="abc"),
        call("crash-states", day=4, counts={"states": 500}, version="new", commit="abc", code=1),
        call("crash-states", day=1, counts={"states": 300}, version="old"),
        call("other", day=1, counts={"states": 7}, version="old"),
    ]
    assert total(FIGURE, calls) == 2300
    text = page(calls, [STATES])
    assert "| crash states | 2,000 | 2,300 |" in text
    assert "is new, a hash of its source, of commit abc.\nOn it: 2 calls, 1 of them failed" in text
    assert "On all versions: 4 calls, 1 of them failed, 0.0 hours, from 2026-01-01 to 2026-01-04, on 2 CPUs" in text


def test_the_oldest_proof_comes_first_and_only_parts_that_exist_and_were_run_are_named() -> None:
    calls = [call("b", day=1), call("a", day=2, counts={"things": 3}), call("a", day=3, code=1), call("gone", day=1)]
    _, _, section = page(calls, [part("a"), part("b"), part("never")]).partition("## Newest proofs")
    assert [line for line in section.partition("##")[0].splitlines() if line.startswith("| ")][1:] == [
        "| b: a number | 2026-01-01, v | 1 | 0 | nothing counted |",
        "| a: a number | 2026-01-02, v | 2 | 1 | 3 things |",
    ]


def test_open_failures_are_named_with_the_end_of_their_output() -> None:
    failed = call("a", code=1)
    assert f"- `{failed.command}`: exit code 1 on 2026-01-01, version v\n  > oh no" in page([failed], [part("a")])
    again = call("a", day=2, command=failed.command)
    assert "None: every call that has failed has passed since" in page([failed, again], [part("a")])


def test_the_page_does_not_depend_on_the_order_of_the_record() -> None:
    calls = [call("a", day=day, counts={"things": day}) for day in (1, 2, 3)]
    assert page(calls, [part("a")]) == page(calls[::-1], [part("a")])
    assert "Nothing was run yet." in page([], [])


@pytest.fixture
def checkout(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """The command with a record, a page and parts of its own."""
    monkeypatch.setattr(command, "Records", lambda: Records(tmp_path / "proof.jsonl"))
    monkeypatch.setattr(command, "PAGE", tmp_path / "proof.md")
    monkeypatch.setattr(command, "FILE", tmp_path / "proof.jsonl")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "all_parts", lambda: [part("bad", "raise SystemExit(3)"), part("good")])
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    return tmp_path


def test_page_and_record_are_written_together_and_a_failure_is_named_again(checkout, capsys) -> None:
    assert command.main(["--minutes", "60", "--part", "bad", "--jobs", "1"]) == 1
    (line,) = (checkout / "proof.jsonl").read_text().splitlines()
    failed = json.loads(line)
    assert failed["code"] == 3
    assert f"- `{failed['command']}`: exit code 3" in (checkout / "proof.md").read_text()
    out = capsys.readouterr().out
    assert out.count(shown(failed["command"])) == 3, "when it begins, when it fails and at the end"
    assert "1 calls in 0.0 minutes, 1 failed" in out
    assert "Make each a test with its seed" in out.splitlines()[-2]


def test_parts_are_listed_and_chosen_by_name(checkout, capsys) -> None:
    Records(checkout / "proof.jsonl").add(call("bad"))
    assert command.main(["--list"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["good", "bad"]
    assert command.main(["--list", "--part", "b*"]) == 0
    assert capsys.readouterr().out.startswith("2026-01-01T00:00 ")
    with pytest.raises(SystemExit):
        command.main(["--part", "none"])
    assert "no part is named none" in capsys.readouterr().err


def test_minutes_in_which_nothing_fits_are_no_failure(checkout, capsys) -> None:
    assert command.main(["--minutes", "0"]) == 0
    assert "no part can be expected to end in this time" in capsys.readouterr().out


def test_two_soaks_in_one_checkout_would_take_the_same_seeds(checkout, capsys) -> None:
    with command._only_one(), pytest.raises(SystemExit):
        command.main(["--minutes", "0"])
    assert "another soak runs in this checkout" in capsys.readouterr().err


def test_the_record_is_in_the_folder_of_the_page() -> None:
    assert FILE.parent == PAGE.parent
