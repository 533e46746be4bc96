"""Runs the suite of one client, or of all, and compares the outcome with the client's allow list.

    compat/kcat/run [--against kafka] [pytest's own arguments]      # the same as: compat/run kcat ...
    compat/run all [--against kafka | --brokers 3 [--controllers kafka]]
    compat/run transactions --brokers 3 --kill-every 20 [--kill-seed 7] [--rounds 3]
    compat/run kcat --secure SASL_SSL/SCRAM-SHA-256|all [--rotate 2]

`compat/NAME/tests.allow` lists the tests of `test_NAME.py` and `test_NAME_*.py` in `tests/clients` that pass against
Barnabas and Apache Kafka, by their names in pytest. A listed test must pass, so that a skipped or lost test is noticed,
and a test that passes must be listed. `transactions`, `groups_real` and the other names of `SHARED` are tests with
clients of several libraries; they have no list.

With `--kill-every` a broker of the cluster is killed every so many seconds meanwhile
(`tests.support.processes.killer`). Tests marked `uninterrupted` are skipped then.

With `--secure` the clients use a secured listener (`tests.support.processes.security`); `all` is every combination that
the client has, one after the other. With `--rotate` the listener's certificate is replaced every so many seconds
meanwhile (`tests.support.processes.rotator`). Tests marked `plaintext` are skipped then.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.processes.killer import Killer
from tests.support.processes.rotator import Rotator
from tests.support.processes.security import OF_CLIENT, combination

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(path.parent.name for path in (ROOT / "compat").glob("*/tests.allow"))
SHARED = ("consumer_protocol", "groups_real", "share_groups", "transactions")
"""Suites with clients of several libraries."""
TIMEOUT_OF_A_KILLED_TEST_S = 400
REASONS = ("needs an uninterrupted cluster", "needs a listener without security")
"""The reasons why a run skips tests."""
BROKERS_OF_A_KILLED_CLUSTER = 3
"""With fewer, requests that need two in-sync replicas fail while one broker is down."""


def test_files(name: str) -> list[Path]:
    """The modules of a client's suite."""
    folder, stem = ROOT / "tests" / "clients", f"test_{name.replace('-', '_')}"
    return [*folder.rglob(f"{stem}.py"), *sorted(folder.rglob(f"{stem}_*.py"))]


def allowed(name: str) -> list[str]:
    """The listed tests of a suite, by their names in pytest: `test_x`, `test_x[parameter]`."""
    return (ROOT / "compat" / name / "tests.allow").read_text().split()


class Outcomes:
    """A pytest plugin that collects passed and deselected tests."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.broken: set[str] = set()
        self.deselected: set[str] = set()
        """Deselected tests, also tests skipped because a broker is killed meanwhile or the listener is secured."""
        self.skipped: set[str] = set()
        """The deselected tests that are skipped."""

    @property
    def passed(self) -> set[str]:
        return self.ran - self.broken

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected |= {_test_name(item.nodeid) for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _test_name(report.nodeid)
        if report.skipped and any(why in str(report.longrepr) for why in REASONS):
            self.deselected.add(name)
            self.skipped.add(name)
        elif not report.passed:
            self.broken.add(name)
        elif report.when == "call":
            self.ran.add(name)


def _test_name(node_id: str) -> str:
    return node_id.partition("::")[2]


def complaints(listed: Sequence[str], passed: set[str], deselected: set[str]) -> list[str]:
    """Differences between the allow list and a run of the suite."""
    missed = [f"listed, but did not pass: {name}" for name in listed if name not in passed | deselected]
    return missed + [f"passed, but is not listed: {name}" for name in sorted(passed - set(listed))]


def run(name: str, arguments: Sequence[str], meanwhile: Killer | Rotator | None = None) -> int:
    """Run one suite in this process; returns 0 if pytest passes and the outcome matches the allow list, if it has one.

    The broker of the tests is given to `meanwhile`.
    """
    try:
        import pytest
    except ImportError:
        print("The suites need pytest and the clients: `make test` sets them up.", file=sys.stderr)
        return 2
    outcomes = Outcomes()
    plugins = [outcomes] if meanwhile is None else [outcomes, meanwhile]
    code = int(pytest.main([*map(str, test_files(name)), "-q", *arguments], plugins=plugins))
    if name in SHARED:
        print(f"{name}: {len(outcomes.passed)} of {len(outcomes.ran | outcomes.broken)} tests passed")
        return code
    listed = allowed(name)
    problems = complaints(listed, outcomes.passed, outcomes.deselected)
    for complaint in problems:
        print(f"{name}: {complaint}")
    skipped = f", {len(outcomes.skipped)} skipped with a reason" if outcomes.skipped else ""
    print(f"{name}: {len(outcomes.passed & set(listed))} of {len(listed)} listed tests passed{skipped}")
    return code or int(bool(problems))


def run_killed(name: str, arguments: Sequence[str], options: argparse.Namespace) -> int:
    """Run one suite as often as asked while brokers are killed; the highest of the exit codes, 1 if one stays away."""
    seed = random.SystemRandom().randrange(2**32) if options.kill_seed is None else options.kill_seed
    print(f"a broker is killed every {options.kill_every:g} s; --kill-seed {seed} repeats their order", flush=True)
    pytest_arguments = [f"--timeout={TIMEOUT_OF_A_KILLED_TEST_S}", *arguments]
    output = os.dup(sys.stdout.fileno())  # pytest captures writes to the original

    def say(text: str) -> None:
        os.write(output, f"{text}\n".encode())

    with Killer(options.kill_every, seed, say) as killer:
        code = max(run(name, pytest_arguments, killer) for _ in range(options.rounds))
    for finding in killer.findings:
        print(f"{name}: {finding}")
    print(f"{name}: {killer.kills} kills in {options.rounds} round{'s'[: options.rounds > 1]}")
    return code or int(bool(killer.findings))


def run_rotated(name: str, arguments: Sequence[str], every_s: float) -> int:
    """Run one suite while certificates are replaced; 1 if a rotation failed, or if there was none."""
    output = os.dup(sys.stdout.fileno())

    def say(text: str) -> None:
        os.write(output, f"{text}\n".encode())

    with Rotator(every_s, say) as rotator:
        code = run(name, arguments, rotator)
    findings = rotator.findings
    if not rotator.rotations.total():
        findings.append(f"no certificate was rotated in {every_s:g} s: choose a shorter --rotate")
    for finding in findings:
        print(f"{name}: {finding}")
    print(f"{name}: {rotator.summary}")
    return code or int(bool(findings))


def run_all_secured(name: str, arguments: Sequence[str]) -> int:
    """Run one suite over every combination that the client has, each in a process of its own, and print a line each.

    pytest's output is shown if a combination fails.
    """
    code = 0
    for secured in OF_CLIENT[name]:
        command = [sys.executable, "-m", "compat.suite", name, "--secure", str(secured), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            print(done.stdout)
        results = [line.removeprefix(f"{name}: ") for line in done.stdout.splitlines() if line.startswith(f"{name}: ")]
        verdict = "; ".join(results) if done.returncode == 0 else f"FAILED: {'; '.join(results)}"
        print(f"{name} {secured}: {verdict}", flush=True)
        code = max(code, done.returncode)
    return code


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="compat/run",
        usage=f"compat/run {'|'.join([*NAMES, *SHARED, 'all'])} [options] [pytest's arguments]",
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=[*NAMES, *SHARED, "all"], metavar="NAME")
    parser.add_argument("--against", choices=("barnabas", "kafka"), help="another broker: Apache Kafka 4.4.0")
    parser.add_argument("--brokers", type=int, default=1, metavar="N", help="a cluster of Barnabas")
    parser.add_argument("--controllers", choices=("ours", "kafka"), help="the controllers of that cluster")
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="kill a broker of the cluster so often")
    parser.add_argument("--kill-seed", type=int, metavar="SEED", help="the order of the kills")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often the suite is run under kills")
    parser.add_argument(
        "--secure",
        type=lambda text: text if text == "all" else combination(text),
        metavar="PROTOCOL[/MECHANISM]|all",
        help="a secured listener",
    )
    parser.add_argument("--rotate", type=float, metavar="SECONDS", help="replace its certificate so often")
    options, rest = parser.parse_known_args(arguments)
    if mistake := _mistake(options):
        parser.error(mistake)
    if options.name == "all":  # each in its own process, with its own broker
        command = [sys.executable, "-m", "compat.suite"]
        own = list(arguments)
        own.remove("all")
        return max(subprocess.run([*command, name, *own], cwd=ROOT, check=False).returncode for name in NAMES)
    suite_arguments = [f"--brokers={options.brokers}", *rest]
    suite_arguments += [f"--{key}={value}" for key in ("against", "controllers") if (value := getattr(options, key))]
    if options.secure == "all":
        own = [*suite_arguments, *([] if options.rotate is None else [f"--rotate={options.rotate}"])]
        return run_all_secured(options.name, own)
    if options.secure is not None:
        suite_arguments.append(f"--secure={options.secure}")
        if options.rotate is not None and options.secure.has_tls:
            return run_rotated(options.name, suite_arguments, options.rotate)
    if options.kill_every is not None:
        return run_killed(options.name, suite_arguments, options)
    return run(options.name, suite_arguments)


def _mistake(options: argparse.Namespace) -> str | None:
    """A sentence about options that cannot be combined, None if there are none."""
    if options.kill_every is not None and (options.brokers < BROKERS_OF_A_KILLED_CLUSTER or options.against == "kafka"):
        return f"--kill-every needs --brokers {BROKERS_OF_A_KILLED_CLUSTER} of Barnabas"
    if options.secure is None:
        return None if options.rotate is None else "--rotate needs --secure"
    if options.name in SHARED:
        return f"--secure is for the suites of one client: {', '.join(NAMES)}"
    if options.brokers > 1:
        return "--secure is for one broker"
    if options.secure != "all" and options.name != "all" and options.secure not in OF_CLIENT[options.name]:
        return f"{options.name} does not have {options.secure}: it has {', '.join(map(str, OF_CLIENT[options.name]))}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
