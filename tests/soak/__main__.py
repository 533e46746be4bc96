"""`python -m tests.soak --minutes 10`: prove by volume, and write docs/evidence/proof.jsonl and docs/evidence/proof.md.

`make soak MINUTES=10` sets up what it needs first. The minutes are spent on the parts whose newest proof is oldest,
with new seeds each time; what has failed before is run first.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch

from tests.soak.choice import by_age, expected_s
from tests.soak.machine import cores, load, load_now, this_machine
from tests.soak.page import PAGE, page
from tests.soak.part import Part
from tests.soak.parts import all_parts
from tests.soak.records import FILE, ROOT, Machine, Records, commit, open_failures, product_version
from tests.soak.run import Outcome, Soak, counted, shown
from tests.soak.tools import missing

INTERRUPTED = 130


class AnotherRunsError(Exception):
    """Another soak runs in this checkout: both would take the same seeds."""


def main(arguments: Sequence[str]) -> int:
    """The command; the exit code is 1 if a call failed, 130 if it was interrupted before one did."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="no call is begun that would end later (10)")
    parser.add_argument("--part", action="append", metavar="NAME", help="only this part, or those of a pattern; repeat")
    parser.add_argument("--jobs", type=int, default=cores(), help="how many calls run at the same time (CPUs)")
    parser.add_argument("--network", action="store_true", help="also the parts that download something")
    parser.add_argument("--list", action="store_true", help="run nothing, list the parts, the next one first")
    parser.add_argument("--page-only", action="store_true", help="run nothing, write docs/evidence/proof.md")
    options = parser.parse_args(arguments)
    records, everything = Records(), all_parts()
    parts = [part for part in everything if _is_named(part, options.part)]
    if not parts:
        parser.error(f"no part is named {' or '.join(options.part)}; --list lists all")
    if options.page_only:
        PAGE.write_text(page(records.calls, everything))
        return 0
    machine = this_machine()
    if options.list:
        return _list(parts, records, machine, has_network=options.network)
    try:
        with _only_one():
            return _run(parts, everything, records, machine, options)
    except AnotherRunsError:
        parser.error("another soak runs in this checkout")


def _is_named(part: Part, names: Sequence[str] | None) -> bool:
    return not names or any(fnmatch(part.name, name) for name in names)


def _run(
    parts: Sequence[Part], everything: Sequence[Part], records: Records, machine: Machine, options: argparse.Namespace
) -> int:
    def write_page() -> None:
        PAGE.write_text(page(records.calls, everything))

    write_page()  # it may be older than the record, if that was merged or the last soak was killed
    never = {part.name for part in parts} - {call.part for call in records.calls}
    failures = len([call for call in open_failures(records.calls) if call.part in {part.name for part in parts}])
    print(
        f"{options.minutes:g} minutes, {options.jobs} calls at a time; "
        f"of {len(parts)} parts {len(never)} were never run, {failures} failures are open\n"
        f"commit {commit() or 'unknown'}, product {product_version()}, {machine.cores} CPUs: {machine.cpu}, "
        f"Python {machine.python}, ten million additions in {machine.calibration} s, "
        f"{load():.1f} processes for each CPU"
    )
    soak = Soak(parts, records, machine, jobs=options.jobs, has_network=options.network, after_each=write_page)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda number, _: soak.interrupt(signal.Signals(number).name))
    began = time.monotonic()
    outcome = soak(options.minutes)
    return _tell(outcome, (time.monotonic() - began) / 60)


def _tell(outcome: Outcome, minutes: float) -> int:
    calls, failed = outcome.calls, outcome.failed
    print(f"\n{len(calls)} calls in {minutes:.1f} minutes, {len(failed)} failed: {counted(calls)}")
    if not calls and not outcome.is_interrupted:
        print("no part can be expected to end in this time (--list shows how long each takes)")
    if calls:
        print(f"they are recorded in {FILE.relative_to(ROOT)}, and {PAGE.relative_to(ROOT)} is written: commit both")
    if outcome.is_interrupted:
        print("interrupted: what was running is not recorded, and the same command goes on")
    if failed:
        print(
            "These have failed. Make each a test with its seed, and mend what it shows; they are run first next time:"
        )
        for call in failed:
            print(f"  {shown(call.command)}")
        return 1
    return INTERRUPTED if outcome.is_interrupted else 0


def _list(parts: Sequence[Part], records: Records, machine: Machine, *, has_network: bool) -> int:
    newest = {call.part: call.began for call in sorted(records.calls, key=lambda call: call.began)}
    assert machine.calibration is not None
    for part in by_age(parts, records.calls):
        seconds = expected_s(part, "", records.calls, machine.calibration, load_now())
        reason = missing(part.needs, has_network=has_network)
        print(
            f"{newest.get(part.name, 'never')[:16]:16} {seconds:5.0f} s  {part.name}"
            + (f" ({reason})" if reason else "")
        )
    return 0


@contextmanager
def _only_one() -> Iterator[None]:
    """A block in which no other soak runs in this checkout. AnotherRunsError if one does."""
    path = ROOT / "build" / "soak" / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherRunsError from None
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
