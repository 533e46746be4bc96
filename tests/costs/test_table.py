"""The table of costs: it is read as it was written, and differences are reported."""

from __future__ import annotations

from pathlib import Path

from tests.costs.count import Cost
from tests.costs.table import Row, failure, problems, read, row_of, text_of

BEFORE = {"Produce": Row(1000.0, {"epoll_wait": 1.0, "sendto": 1.0}, {"append": 600.0, "send": 400.0})}


def _counted(bytecodes: float, calls: dict[str, float] | None = None, **layers: float) -> dict[str, Row]:
    return {"Produce": Row(bytecodes, calls or {"epoll_wait": 1.0, "sendto": 1.0}, layers)}


def test_a_table_that_is_written_is_read_again(tmp_path: Path) -> None:
    table = {
        "Produce, 1 record": Row(3130.75, {"epoll_wait": 0.02, "sendto": 1.0}, {"append": 3000.0, "Python": 130.75}),
        "Heartbeat": Row(1997.0, {"recvfrom": 1.0}, {"read": 1997.0}),
    }
    path = tmp_path / "table.toml"
    path.write_text(text_of(table))
    assert read(path) == table
    lines = path.read_text().splitlines()
    assert '"Heartbeat" = { bytecodes = 1997, calls = { recvfrom = 1 } }' in lines


def test_counts_within_two_percent_are_no_problem() -> None:
    assert problems(BEFORE, _counted(1020.0)) == []
    assert problems(BEFORE, _counted(951.0)) == []


def test_more_bytecodes_are_a_problem_that_shows_the_layers() -> None:
    (problem,) = problems(BEFORE, _counted(1021.0, append=600.0, send=421.0))
    assert problem.startswith("Produce: bytecodes 1000 -> 1021 (+2.1%), more than the table allows")
    assert problem.splitlines()[1:] == ["    send             400 ->       421  (+21.00)"]


def test_one_more_system_call_is_a_problem_and_so_is_one_of_another_name() -> None:
    (problem,) = problems(BEFORE, _counted(1000.0, {"epoll_wait": 1.0, "sendto": 1.03}))
    assert problem.splitlines()[0] == "Produce: sendto 1 -> 1.03, more than the table allows"
    (problem,) = problems(BEFORE, _counted(1000.0, {"epoll_wait": 1.0, "sendmsg": 1.0}))
    assert "sendmsg 0 -> 1, more than the table allows" in problem
    assert "sendto 1 -> 0, write a new table to keep that" in problem


def test_what_is_gained_wants_a_new_table() -> None:
    (problem,) = problems(BEFORE, _counted(940.0, append=540.0, send=400.0))
    assert problem.startswith("Produce: bytecodes 1000 -> 940 (-6.0%), write a new table to keep that")
    assert "append" in problem
    (problem,) = problems(BEFORE, _counted(1000.0, {"sendto": 1.0}))
    assert problem.splitlines()[0] == "Produce: epoll_wait 1 -> 0, write a new table to keep that"


def test_what_other_versions_of_libraries_execute_is_not_compared() -> None:
    before = {"Produce": Row(1000.0, {}, {"append": 900.0, "trio": 100.0})}
    after = {"Produce": Row(1300.0, {}, {"append": 900.0, "trio": 400.0})}
    assert problems(before, after)
    assert problems(before, after, same_libraries=False) == []
    dearer = {"Produce": Row(1350.0, {}, {"append": 950.0, "trio": 400.0})}
    assert "bytecodes 900 -> 950 (+5.6%)" in problems(before, dearer, same_libraries=False)[0]


def test_a_kind_that_is_not_in_the_table_is_a_problem() -> None:
    assert problems({}, _counted(1000.0)) == ["Produce: is not in the table"]


def test_a_failure_says_how_to_write_a_new_table(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    path.write_text(text_of(BEFORE).replace("outcome = ", 'outcome = "0.1" # '))
    text = failure(["Produce: is not in the table"], path)
    assert "`python -m tests.costs --write` writes a new table" in text
    assert "in place of 0.1" in text


def test_the_row_of_a_cost_has_its_layers() -> None:
    root = Path("/somewhere")
    functions = {
        (f"{root}/barnabas/storage/log.py", "Log.append_as_leader"): 10.004,
        (f"{root}/barnabas/broker/net/reactor.py", "Reactor._read"): 5.0,
        (f"{root}/.venv/lib/python3.11/site-packages/trio/_core/_run.py", "run"): 2.0,
    }
    row = row_of(Cost(17.004, {"sendto": 1.0}, functions), root)
    assert row == Row(17.0, {"sendto": 1.0}, {"read": 5.0, "append": 10.0, "trio": 2.0})
