"""The files for contributors say what ./check, the Makefile and the package do."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def _yaml(name: str | Path) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def test_pre_commit_has_the_static_checks_of_check() -> None:
    steps = re.findall(r'^step "([\w ]+)" (.+)$', (ROOT / "check").read_text(), re.MULTILINE)
    (repository,) = _yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repository["hooks"]]
    assert hooks == [command for _, command in steps]
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repository["hooks"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_of_a_workflow_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs = _yaml(path)["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    words = [word for command in commands if command.startswith("make ") for word in command.split()[1:]]
    named = {word for word in words if "=" not in word}
    assert named <= targets
    assert {"test", "soak"} <= named
    for command in commands:
        for word in shlex.split(command):
            assert not word.startswith("tests/") or (ROOT / word).exists(), word
    for job in jobs.values():
        assert job.get("needs") in {None, *jobs}


def test_python_versions_of_workflows_and_classifiers_are_those_that_are_allowed() -> None:
    lowest = PROJECT["requires-python"].removeprefix(">=")
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    jobs = _yaml(".github/workflows/tests.yml")["jobs"]
    assert min(named, key=lambda version: int(version.partition(".")[2])) == lowest
    assert jobs["test"]["strategy"]["matrix"]["python"][0] == lowest
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) <= set(named)


def test_license_is_the_one_that_the_package_names() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert {"LICENSE", "NOTICE"} == set(PROJECT["license-files"])


def test_extras_that_pages_name_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {extra for page in pages for extra in re.findall(r"'(?:\.|barnabas)\[(\w+)\]'", page.read_text())}
    assert "spark" in named
    assert named <= PROJECT["optional-dependencies"].keys()
