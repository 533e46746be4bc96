"""Runs the tests of other projects on the test kit, unchanged, and compares the counts with `projects.toml`.

compat/run projects [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from compat.projects.project import Project, ProjectError, projects
from tests.support.processes.ports import free_port

TIMEOUT_S = 600


@dataclass(frozen=True)
class Counts:
    """The outcome of a run."""

    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(project: Project) -> tuple[Counts, str]:
    """Run a project's tests; return the counts and pytest's output.

    ProjectError if it cannot be fetched, installed or run.
    """
    project.install()
    port = project.port or free_port()
    report = project.folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [str(project.python), "-m", "pytest", f"--junit-xml={report}", *project.pytest_arguments(port)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BARNABAS_", "PYTEST_"))}
    with TemporaryDirectory(prefix="barnabas-project-") as folder:
        try:
            done = subprocess.run(
                command, cwd=project.unpack(Path(folder)), env=env | project.variables(port), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as expired:
            raise ProjectError(f"the tests of {project.name} have not ended in {TIMEOUT_S} s") from expired
    if not report.exists():
        raise ProjectError(f"pytest did not run the tests of {project.name}:\n{done.stdout[-2000:].strip()}")
    return counted(report), done.stdout


def counted(report: Path) -> Counts:
    """The counts in a report of pytest. An error of a fixture is a failure."""
    suites = list(ET.parse(report).iter("testsuite"))

    def total(key: str) -> int:
        return sum(int(suite.get(key, 0)) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return Counts(total("tests") - failed - skipped, failed, skipped)


def main(arguments: Sequence[str]) -> int:
    declared = projects()
    parser = argparse.ArgumentParser(prog="compat/run projects", description="Tests of other projects on the test kit.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all without one: {', '.join(declared)}")
    names = parser.parse_args(arguments).names or list(declared)
    if unknown := [name for name in names if name not in declared]:
        parser.error(f"there is no project {unknown[0]}; there are {', '.join(declared)}")
    code = 0
    for name in names:
        project = declared[name]
        try:
            counts, output = run(project)
        except ProjectError as error:
            print(f"{name}: {error}", flush=True)
            code = 1
            continue
        if counts != Counts(project.passed, 0, project.skipped):
            print(output)
            print(f"{name}: {project.passed} passed and {project.skipped} skipped were expected")
            code = 1
        print(f"{name} {project.version}: {counts}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
