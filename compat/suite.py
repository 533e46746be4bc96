"""Runs the suite of one client, or of all, and compares the outcome with the client's allow list.

    compat/kcat/run [--against kafka] [pytest's own arguments]      # the same as: compat/run kcat ...
    compat/run all [--against kafka | --brokers 3]

`compat/NAME/tests.allow` lists the tests of `tests/clients/test_NAME.py` and `test_NAME_*.py` that pass against
Barnabas and Apache Kafka, by their names in pytest. A listed test must pass, so that a skipped or lost test is noticed,
and a test that passes must be listed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(path.parent.name for path in (ROOT / "compat").glob("*/tests.allow"))


def test_files(name: str) -> list[Path]:
    """The modules of a client's suite."""
    folder, stem = ROOT / "tests" / "clients", f"test_{name.replace('-', '_')}"
    return [folder / f"{stem}.py", *sorted(folder.glob(f"{stem}_*.py"))]


def allowed(name: str) -> list[str]:
    """The listed tests of a suite, by their names in pytest: `test_x`, `test_x[parameter]`."""
    return (ROOT / "compat" / name / "tests.allow").read_text().split()


class Outcomes:
    """A pytest plugin that collects passed and deselected tests."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.broken: set[str] = set()
        self.deselected: set[str] = set()

    @property
    def passed(self) -> set[str]:
        return self.ran - self.broken

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected |= {_test_name(item.nodeid) for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _test_name(report.nodeid)
        if not report.passed:
            self.broken.add(name)
        elif report.when == "call":
            self.ran.add(name)


def _test_name(node_id: str) -> str:
    return node_id.partition("::")[2]


def complaints(listed: Sequence[str], passed: set[str], deselected: set[str]) -> list[str]:
    """Differences between the allow list and a run of the suite."""
    missed = [f"listed, but did not pass: {name}" for name in listed if name not in passed | deselected]
    return missed + [f"passed, but is not listed: {name}" for name in sorted(passed - set(listed))]


def run(name: str, arguments: Sequence[str]) -> int:
    """Run one suite in this process; returns 0 if pytest passes and the outcome matches the allow list."""
    try:
        import pytest
    except ImportError:
        print("The suites need pytest and the clients: `make test` sets them up.", file=sys.stderr)
        return 2
    outcomes, listed = Outcomes(), allowed(name)
    code = int(pytest.main([*map(str, test_files(name)), "-q", *arguments], plugins=[outcomes]))
    found = complaints(listed, outcomes.passed, outcomes.deselected)
    for complaint in found:
        print(f"{name}: {complaint}")
    print(f"{name}: {len(outcomes.passed & set(listed))} of {len(listed)} listed tests passed")
    return code or int(bool(found))


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in [*NAMES, "all"]:
        names = "|".join([*NAMES, "all"])
        print(f"usage: compat/run {names} [--against kafka | --brokers N] [pytest's arguments]", file=sys.stderr)
        return 2
    name, rest = arguments[0], arguments[1:]
    if name != "all":
        return run(name, rest)
    command = [sys.executable, "-m", "compat.suite"]  # each in its own process, with its own broker
    return max(subprocess.run([*command, one, *rest], cwd=ROOT, check=False).returncode for one in NAMES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
