"""The lists, versions and counts in `compat/` are up to date, and `run` compares a suite with its list."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat import suite
from tests.support.cases import for_each
from tests.support.processes.security import MUTUAL, OF_CLIENT

COMPAT = suite.ROOT / "compat"
DISTRIBUTIONS = {"confluent_kafka": "confluent-kafka", "kafka_python": "kafka-python", "aiokafka": "aiokafka"}
POMS = {
    "java": "kafka-clients",
    "kafka_streams": "kafka-streams",
    "spark": "spark-sql-kafka-0-10_2.13",
    "kafka-tools": "kafka-tools",
}
PIPELINE_POM = COMPAT.parent / "barnabas" / "spark" / "session" / "pom.xml"
MODULES = {"franz-go": "github.com/twmb/franz-go"}


@pytest.fixture(scope="module")
def collected() -> dict[str, list[str]]:
    """The tests of each suite, as pytest finds them; a suite whose client is not installed has none."""
    names = {file.name: name for name in suite.NAMES for file in suite.test_files(name)}
    files = [str(file) for name in suite.NAMES for file in suite.test_files(name)]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=suite.ROOT)
    tests_of: dict[str, list[str]] = {name: [] for name in suite.NAMES}
    for line in done.stdout.splitlines():
        file, colons, test = line.partition("::")
        if colons and file.endswith(".py"):
            tests_of[names[Path(file).name]].append(test)
    assert any(tests_of.values()), done.stdout + done.stderr
    return tests_of


@pytest.mark.parametrize("name", suite.NAMES)
def test_allow_list_is_the_suite(name: str, collected: dict[str, list[str]]) -> None:
    """Java's list names the scenarios of a program; test_java.py compares it with what the program runs."""
    if not collected[name]:
        pytest.skip(f"the client of {name} is not installed")
    assert suite.allowed(name) == collected[name]


@for_each("name", suite.NAMES)
def test_each_folder_has_the_files_that_the_index_lists(name: str) -> None:
    for file in ("README.md", "FINDINGS.md"):
        assert (COMPAT / name / file).read_text().startswith("# ")
    assert os.access(COMPAT / name / "run", os.X_OK)


def row(name: str) -> list[str]:
    """The cells of a client's row in the index."""
    (line,) = [line for line in (COMPAT / "README.md").read_text().splitlines() if line.startswith(f"| [{name}](")]
    return [cell.strip() for cell in line.strip("|").split("|")]


@for_each("name", suite.NAMES)
def test_index_counts_the_tests(name: str) -> None:
    count = str(len(suite.allowed(name)))
    assert row(name)[2:4] == [count, count]


def secured_rows() -> dict[str, list[str]]:
    """The cells of the table of secured listeners, by client."""
    lines = (COMPAT / "README.md").read_text().partition("## Over secured listeners")[2].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


def test_the_table_of_secured_listeners_has_what_each_client_has() -> None:
    rows = secured_rows()
    ways = rows.pop("client")
    names = {f"SSL/{MUTUAL}": MUTUAL, "SSL": ""}
    assert set(rows) <= set(OF_CLIENT)
    for name, cells in rows.items():
        counted = {names.get(way, way) for way, cell in zip(ways, cells, strict=True) if cell}
        assert counted == {combination.way for combination in OF_CLIENT[name]}, name
        assert {int(cell) for cell in cells if cell} == {len(suite.allowed(name)) - skipped(name)}, name


def skipped(name: str) -> int:
    """How many listed tests of a suite need a listener without security."""
    texts = [path.read_text() for path in suite.test_files(name)]
    return sum(len(re.findall(r"^@pytest.mark.plaintext\(", text, re.MULTILINE)) for text in texts)


def pinned(name: str) -> str:
    """The version of a client that the suite runs with."""
    if name in MODULES:
        (version,) = re.findall(rf"{re.escape(MODULES[name])} (v\S+)", (COMPAT / name / "go.mod").read_text())
        return str(version)
    if name in POMS:
        text = (PIPELINE_POM if name == "spark" else COMPAT / name / "pom.xml").read_text()
        match = re.search(rf"<artifactId>{re.escape(POMS[name])}</artifactId>\s*<version>(.+?)</version>", text)
        assert match is not None
        return match[1]
    try:
        return importlib.metadata.version(DISTRIBUTIONS[name])
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")


@for_each("name", [*DISTRIBUTIONS, *POMS, *MODULES])
def test_readme_and_index_name_the_tested_version(name: str) -> None:
    assert pinned(name) in (COMPAT / name / "README.md").read_text()
    assert pinned(name) in row(name)[1]


def test_listed_tests_must_pass_and_passed_tests_must_be_listed() -> None:
    assert suite.complaints(["a", "b", "c"], {"a"}, {"b"}) == ["listed, but did not pass: c"]
    assert suite.complaints(["a"], {"a", "b"}, set()) == ["passed, but is not listed: b"]
    assert suite.complaints(["a", "b"], {"a"}, {"b"}) == []


def test_run_runs_a_part_of_a_suite() -> None:
    pytest.importorskip("aiokafka")
    command = [str(COMPAT / "aiokafka" / "run"), "-k", "idempotent", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "aiokafka: 1 of 17 listed tests passed" in done.stdout


def test_run_of_an_unknown_client_is_a_mistake() -> None:
    done = subprocess.run([str(COMPAT / "run"), "unknown"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: compat/run aiokafka|")
