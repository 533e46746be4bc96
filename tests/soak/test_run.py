"""Calls are begun while they fit, recorded as they end, and none is lost unless an interruption stops it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.soak.choice import seed_of
from tests.soak.fakes import MACHINE, WAITS, call, part
from tests.soak.part import Count, Part
from tests.soak.process import TIMED_OUT, Process, StoppedError, split
from tests.soak.records import Records, commit, product_version
from tests.soak.run import WITHOUT_COUNTS, Outcome, Soak, shown

ON = commit() or product_version()
FOREVER = part("waits", WAITS)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "proof.jsonl")


@pytest.fixture
def soak(records: Records, tmp_path: Path) -> Callable[..., Soak]:
    """A factory `soak(*parts, **options)`."""

    def make(*parts: Part, **options: Any) -> Soak:
        return Soak(parts, records, MACHINE, logs=tmp_path / "logs", load_now=lambda: 1.0, **options)

    return make


def once(soak: Soak, parts: int, minutes: float = 60) -> Outcome:
    """Run until each of so many parts was called once."""
    ended = 0

    def after_each() -> None:
        nonlocal ended
        ended += 1
        if ended == parts:
            soak.interrupt()

    soak._after_each = after_each
    return soak(minutes)


def test_parts_are_called_in_turn_with_new_seeds_and_recorded(soak, records: Records) -> None:
    outcome = once(soak(part("a"), part("b")), 4)
    seeds = [(name, seed_of(ON, name, number)) for number in (1, 2) for name in "ab"]
    assert [(call.part, call.seed) for call in outcome.calls[:4]] == seeds
    assert [call.counts for call in outcome.calls[:4]] == [{"things": seed} for _, seed in seeds]
    assert Records(records._path).calls[:4] == outcome.calls[:4]
    first = outcome.calls[0]
    assert (first.code, first.commit, first.version, first.machine) == (0, commit(), product_version(), MACHINE)
    assert first.seconds is not None
    assert first.cpu_seconds is not None
    assert 0 <= first.cpu_seconds <= first.seconds + 0.1
    assert first.command == f"python -c \"print('{first.seed} things')\""


def test_the_same_command_goes_on_where_it_was_interrupted(soak, records: Records) -> None:
    interrupted = soak(part("a"), FOREVER, jobs=2)
    assert once(interrupted, 1).is_interrupted
    assert {call.part for call in records.calls} == {"a"}, "what was stopped is not recorded"
    again = once(soak(part("a"), part("waits"), jobs=1), 1)
    assert [(call.part, call.seed) for call in again.calls[:1]] == [("waits", seed_of(ON, "waits", 1))]


def test_an_interruption_stops_what_a_call_has_started(soak, capsys) -> None:
    nested = part("nested", f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{WAITS}'])")
    before = set(psutil.Process().children(recursive=True))  # of this process's other tests
    interrupted = soak(nested, FOREVER, jobs=2)
    interrupted.interrupt()
    assert interrupted(60).is_interrupted
    assert "interrupted: stopping nested, waits" in capsys.readouterr().out
    remaining = set(psutil.Process().children(recursive=True)) - before
    assert [process for process in remaining if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_call_is_not_begun_that_is_expected_to_end_too_late(soak) -> None:
    long, short = part("long", seconds=601), part("short", seconds=1)
    outcome = once(soak(long, short), 1, minutes=10)
    assert {call.part for call in outcome.calls} == {"short"}
    assert soak(long)(10).calls == []


def test_a_part_that_has_failed_is_not_called_again_in_the_same_minutes(soak, capsys) -> None:
    outcome = soak(part("bad", "print('oh no'); raise SystemExit(3)"))(60)
    (failed,) = outcome.failed
    assert (failed.code, failed.tail) == (3, ["oh no"])
    out = capsys.readouterr().out
    assert "bad: FAILED, exit code 3" in out
    assert "| oh no" in out
    assert f"again:      {shown(failed.command)}" in out


def test_what_has_failed_is_run_first_with_its_seed_until_it_passes(soak, records: Records, capsys) -> None:
    says = part("says", "print('{seed} things')")
    records.add(call("says", code=1, seed=7, command=says.command_of(7, "")))
    records.add(call("gone", code=1))
    outcome = once(soak(part("new"), says), 2)
    assert [(entry.part, entry.seed) for entry in outcome.calls[:2]] == [("says", 7), ("new", seed_of(ON, "new", 1))]
    assert "has failed on c: " in capsys.readouterr().out
    assert once(soak(part("new"), says), 1).calls[0].seed != 7


@pytest.mark.parametrize(
    ("script", "options", "code"),
    [
        ("print('nothing')", {}, WITHOUT_COUNTS),
        (WAITS, {"limit_s": 0.3}, TIMED_OUT),
        (f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{WAITS}'])", {"limit_s": 0.5}, TIMED_OUT),
    ],
)
def test_a_call_without_counts_or_over_its_limit_has_failed(soak, script: str, options: dict, code: int) -> None:
    outcome = soak(part("bad", script, **options))(60)
    assert [call.code for call in outcome.calls] == [code]


def test_a_file_without_such_a_test_is_no_failure(soak) -> None:
    none = part("tests", "print('5 deselected in 0.1s'); raise SystemExit(5)", is_pytest=True)
    outcome = soak(none)(60)
    assert (outcome.calls, outcome.skipped) == ([], {"tests": "it has no test that can be run here"})


def test_a_part_that_needs_what_is_not_there_is_skipped_with_a_sentence(soak, capsys) -> None:
    parts = [part("tool", needs=("no-such-tool",)), part("download", needs=("network",))]
    outcome = soak(*parts)(60)
    assert outcome.calls == []
    assert outcome.skipped["tool"] == "no-such-tool is not installed"
    assert "download: skipped, it needs the network" in capsys.readouterr().out
    assert once(soak(parts[1], has_network=True), 1).calls[0].part == "download"


def test_tests_that_were_all_skipped_prove_nothing(soak, records: Records) -> None:
    report = "print('SKIPPED [2] tests/a.py:3: java is not installed'); print('2 skipped in 0.1s')"
    tests = part("tests", report, is_pytest=True, counts=(Count("tests", r"(\d+) passed", is_required=False),))
    outcome = soak(tests)(60)
    assert outcome.skipped == {"tests": "java is not installed"}
    assert records.calls == []


def test_nothing_is_begun_beside_a_part_that_runs_alone(soak) -> None:
    running = soak(part("alone", WAITS, is_alone=True), part("a"), jobs=2)
    running._deadline = float("inf")
    running._begin(running._next())
    assert running._next() is None
    running._stop()


def test_one_part_with_large_memory_runs_at_a_time(soak) -> None:
    heavy = [part(name, WAITS, is_heavy=True) for name in ("first", "second")]
    running = soak(*heavy, part("light", WAITS), jobs=3)
    running._deadline = float("inf")
    names = []
    while planned := running._next():
        if planned.part.name in names:
            break
        names.append(planned.part.name)
        running._begin(planned)
    assert names == ["first", "light"]
    running._stop()


def test_while_a_part_waits_to_be_alone_only_what_ends_with_the_others_is_begun(soak) -> None:
    running = soak(part("first", WAITS, seconds=100), part("alone", seconds=5, is_alone=True),
                   part("longer", seconds=101), part("shorter", WAITS, seconds=50), jobs=2)  # fmt: skip
    running._deadline = float("inf")
    running._begin(running._next())
    planned = running._next()
    assert planned is not None
    assert planned.part.name == "shorter"
    running.interrupt()
    running._ended.get()
    running._stop()


def test_two_calls_of_one_part_at_a_time_have_seeds_and_turns_of_their_own(soak) -> None:
    running = soak(part("a", WAITS, turns=("x", "y")), jobs=2)
    running._deadline = float("inf")
    planned = []
    for _ in range(2):
        planned.append(running._next())
        running._begin(planned[-1])
    assert [entry.seed for entry in planned] == [seed_of(ON, "a", 1), seed_of(ON, "a", 2)]
    assert {entry.turn for entry in planned} == {"x", "y"}
    running._stop()


def test_variables_come_first_and_those_of_the_caller_are_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("BARNABAS_SEEDS", "1")
    script = "import os; print(os.environ['BARNABAS_SEED'], os.environ.get('BARNABAS_SEEDS'))"
    command = f'BARNABAS_SEED=5 python -c "{script}"'
    assert split(command) == ({"BARNABAS_SEED": "5"}, ["python", "-c", script])
    assert Process(command, tmp_path / "log").wait(60).output == "5 None\n"


def test_temporary_files_are_kept_only_of_what_has_failed(tmp_path: Path) -> None:
    write = "import tempfile; name = tempfile.mkdtemp(); print(name, end='')"
    passed = Process(f'python -c "{write}"', tmp_path / "log").wait(60)
    assert passed.folder is None
    assert not Path(passed.output).exists()
    failed = Process(f'python -c "{write}; exit(1)"', tmp_path / "log").wait(60)
    assert failed.folder == Path(failed.output).parent
    Path(failed.output).rmdir()
    failed.folder.rmdir()


def test_what_has_no_parent_any_more_is_stopped_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "orphan.py").write_text(
        f"import os; pipe = open({str(tmp_path / 'pipe')!r}, 'w'); print(os.getpid(), file=pipe); pipe.close(); {WAITS}"
    )
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, sys.argv[1]], start_new_session=True).returncode = 0\n"
    )
    first = f"import subprocess, sys, threading; subprocess.run([sys.executable, *sys.argv[1:]]); {WAITS}"
    arguments = f"{tmp_path / 'parent.py'} {tmp_path / 'orphan.py'}"
    process = Process(f"python -c {shlex.quote(first)} {arguments}", tmp_path / "log")
    with ThreadPoolExecutor(1) as thread:
        waited = thread.submit(process.wait, 600)
        orphan = psutil.Process(int((tmp_path / "pipe").read_text()))
        process.stop()
        with pytest.raises(StoppedError):
            waited.result()
    psutil.wait_procs([orphan], timeout=60)
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
