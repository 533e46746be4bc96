"""`python -m tests.mutants [NAME ...]`: plant every bug in a copy of the tree, and see its test fail.

The named tests must pass in the copy first. Exit code 1 when a bug survives, or a test cannot tell.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.all import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

_FAILED = 1
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis")


def run_test(root: Path, mutant: Mutant) -> int:
    """The exit code of pytest for a mutant's test."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout=1800", mutant.test]
    env = {**os.environ, **mutant.env, "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = subprocess.DEVNULL
    return subprocess.run(command, cwd=root, env=env, stdout=quiet, stderr=quiet, check=False).returncode


def sound_tests(root: Path, mutants: list[Mutant]) -> bool:
    """Whether every named test passes without a bug."""
    sound = True
    runs = {(mutant.test, *sorted(mutant.env.items())): mutant for mutant in mutants}
    for mutant in runs.values():
        if run_test(root, mutant) != 0:
            print(f"{mutant.test} fails without any bug {mutant.env or ''}")
            sound = False
    return sound


def outcome(root: Path, mutant: Mutant) -> str:
    """Plant one bug, run its test, and take the bug out again."""
    path = root / mutant.file
    before = path.read_bytes()
    try:
        mutant.apply(root)
    except ValueError as error:
        return str(error)
    try:
        code = run_test(root, mutant)
    finally:
        path.write_bytes(before)
    if code == _FAILED:
        return "caught"
    return "SURVIVED" if code == 0 else f"pytest ended with {code}"


def main(names: list[str]) -> int:
    """The command."""
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        print(f"There is no mutant {', '.join(sorted(unknown))}")
        return 2
    mutants = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        root = Path(directory, "tree")
        shutil.copytree(ROOT, root, ignore=_LEFT_OUT)
        sound = sound_tests(root, mutants)
        missed = 0
        for mutant in mutants:
            began = time.monotonic()
            result = outcome(root, mutant)
            missed += result != "caught"
            print(f"{result:10} {time.monotonic() - began:6.1f} s  {mutant.name:50} {mutant.test}", flush=True)
    print(f"{len(mutants) - missed} of {len(mutants)} mutants caught")
    return 0 if sound and not missed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
