"""The tests of other projects on the test kit (`compat/run projects`): what the pages say of them, and one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.projects.__main__ import Counts, counted, run
from compat.projects.project import ROOT, Project, projects

PROJECTS = projects()
SMALL = "taskiq-aio-kafka"
"""The one that is run here: what it needs is small, and it takes a second."""


def row(page: str, project: Project) -> str:
    """The row of a project in a page's table."""
    (line,) = [line for line in (ROOT / page).read_text().splitlines() if line.startswith(f"| {project.name} ")]
    return line


@pytest.mark.parametrize("project", PROJECTS.values(), ids=lambda project: project.name)
def test_the_pages_say_what_is_declared(project: Project) -> None:
    counts = f"| {project.version} | {project.passed} | {project.skipped} |"
    detailed, short = row("compat/projects/README.md", project), row("docs/testing.md", project)
    assert counts in detailed
    assert f"{project.name} {project.version}" in short
    assert f"| {project.passed}" in short
    for name, reason in project.left_out.items():
        assert f"`{Path(name).name}` {reason}" in detailed


def test_the_port_of_the_run_is_where_a_project_expects_it() -> None:
    project = PROJECTS[SMALL]
    assert project.variables(4711) == {"TEST_KAFKA_URL": "127.0.0.1:4711"}
    assert project.pytest_arguments(4711) == ["--barnabas-port", "4711"]


def test_a_file_that_is_left_out_is_not_run() -> None:
    arguments = PROJECTS["bluesky-kafka"].pytest_arguments(4711)
    assert "--ignore=bluesky_kafka/tests/test_mongo_consumer.py" in arguments


def test_errors_of_fixtures_are_failures(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>')
    assert counted(report) == Counts(passed=3, failed=3, skipped=3)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_project_passes_unchanged() -> None:
    """The network is needed once, for its archive and its libraries."""
    project = PROJECTS[SMALL]
    counts, output = run(project)
    assert counts == Counts(project.passed, 0, project.skipped), output
