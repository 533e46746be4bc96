"""A copy of the source tree with one bug planted in it, and the test that must fail there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants.mutant import ROOT, Mutant

_PASSED, _FAILED = 0, 1
_SEEDS = "100"
"""Of each kind of simulation, more than in `make test`: a mutant may need more than the tests take by default."""
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".cache", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "dist"
)
_WHERE_IMPORTED = (
    "import barnabas, barnabas.broker, barnabas.coord, barnabas.storage, barnabas.wire\n"
    "for module in barnabas, barnabas.broker, barnabas.coord, barnabas.storage, barnabas.wire: print(module.__file__)"
)


class MutantTree:
    """A private copy of the tree. One bug is planted at a time, so several trees are needed to work in parallel."""

    def __init__(self, root: Path) -> None:
        """Copy the tree to `root`. Links stay links: `barnabas/wire` leads to `wire` of the copy.

        Raises RuntimeError if the editable installation takes precedence over the copy.
        """
        self.root = root
        shutil.copytree(ROOT, root, ignore=_LEFT_OUT, symlinks=True)
        foreign = [path for path in self.imported_files() if not path.is_relative_to(root)]
        if foreign:
            raise RuntimeError(f"not imported from the copy in {root}: {', '.join(map(str, foreign))}")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a test in the copy, and of every process that the test starts in another directory."""
        ours = {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "BARNABAS_SEEDS": _SEEDS}
        return os.environ | ours

    def imported_files(self) -> list[Path]:
        """The files that a process in another directory imports as barnabas and its packages, links resolved."""
        command = [sys.executable, "-c", _WHERE_IMPORTED]
        done = subprocess.run(
            command, cwd="/", env=self.environment, stdout=subprocess.PIPE, text=True, check=True
        )  # fmt: skip
        return [Path(line).resolve() for line in done.stdout.splitlines()]

    def run_test(self, mutant: Mutant) -> int:
        """The exit code of pytest for the mutant's test."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout=1800", mutant.test]
        environment = {name: value for name, value in self.environment.items() if not name.startswith("PYTEST_")}
        quiet = subprocess.DEVNULL
        return subprocess.run(
            command, cwd=self.root, env=environment | mutant.env, stdout=quiet, stderr=quiet, check=False
        ).returncode  # fmt: skip

    def passes(self, mutant: Mutant) -> bool:
        """Whether the mutant's test passes without the bug."""
        return self.run_test(mutant) == _PASSED

    def outcome(self, mutant: Mutant) -> str:
        """Plant the bug, run its test and remove the bug: `caught`, or a text that says what happened instead."""
        path = self.root / mutant.file
        before = path.read_bytes()
        try:
            mutant.apply(self.root)
        except ValueError as error:
            return str(error)
        try:
            code = self.run_test(mutant)
        finally:
            path.write_bytes(before)
        if code == _FAILED:
            return "caught"
        return "SURVIVED" if code == _PASSED else f"pytest ended with {code}"
