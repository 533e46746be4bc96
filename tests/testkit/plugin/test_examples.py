"""The projects in examples/: their own tests pass with the kit as it is, in Python, Java and Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BARNABAS = Path(sys.executable).with_name("barnabas")


def run(folder: Path, command: list[str], timeout: float = 300) -> str:
    """The output of a command that succeeds."""
    environment = os.environ | {"BARNABAS": str(BARNABAS)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def copied(name: str, to: Path) -> Path:
    """A copy of an example, for what its tools write."""
    return shutil.copytree(EXAMPLES / name, to / name, ignore=shutil.ignore_patterns("target", "node_modules"))


def test_the_service(tmp_path: Path) -> None:
    pytest_command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--ignore",
        "tests/test_report_spark.py",
    ]
    assert "passed" in run(copied("orders", tmp_path), pytest_command)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_the_report_in_spark(tmp_path: Path) -> None:
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_report_spark.py"]
    assert "1 passed" in run(copied("orders", tmp_path), pytest_command)


@pytest.mark.soak
@pytest.mark.jvm
@pytest.mark.timeout(400)
@pytest.mark.skipif(not shutil.which("mvn"), reason="needs a JDK and Maven")
def test_from_java(tmp_path: Path) -> None:
    run(copied("java", tmp_path), ["mvn", "-q", "-B", "test"])


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.skipif(not shutil.which("npm"), reason="needs Node")
def test_from_node(tmp_path: Path) -> None:
    folder = copied("node", tmp_path)
    run(folder, ["npm", "install", "--no-audit", "--no-fund"])
    assert "# pass 2" in run(folder, ["npm", "test"])


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_snippets_for_ci_run_the_tests(name: str) -> None:
    text = (EXAMPLES / "orders" / "ci" / name).read_text()
    assert yaml.safe_load(text)
    assert "pip install 'barnabas[test]'" in text
    assert "pytest -n auto" in text
