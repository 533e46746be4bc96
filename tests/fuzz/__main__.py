"""`python -m tests.fuzz TARGET --seconds 60`: fuzz a target, replay an input, or minimise its corpus."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from random import SystemRandom

from tests.fuzz.corpus import corpus, keep
from tests.fuzz.minimise import minimised
from tests.fuzz.targets import NAMES, target

ROOT = Path(__file__).resolve().parent.parent.parent
WORKING = ROOT / ".cache" / "fuzz"
TIMEOUT_S = 5
MEMORY_MB = 1024


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=60, help="how long to fuzz")
    parser.add_argument("--seed", type=int, default=None, help="the seed of libFuzzer (default: a random one)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="check one input, without Atheris")
    parser.add_argument("--minimise", action="store_true", help="put what was found into tests/data/fuzz")
    options = parser.parse_args()
    if options.replay is not None:
        target(options.target).check(options.replay.read_bytes())
        return 0
    if options.minimise:
        return minimise(options.target)
    return fuzz(options.target, options.seconds, options.seed)


def fuzz(name: str, seconds: int, seed: int | None) -> int:
    """Fuzz in another process; its exit code, which is not 0 after a finding."""
    if importlib.util.find_spec("atheris") is None:
        sys.exit("Atheris is not installed: pip install -e .[fuzz]")
    seed = seed if seed is not None else SystemRandom().randrange(1, 2**31)
    directory = working_corpus(name)
    for data in (*corpus(name), *target(name).seeds()):
        (directory / sha256(data).hexdigest()[:20]).write_bytes(data)
    flags = [f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}"]
    flags += [f"-artifact_prefix={WORKING}/{name}-", "-print_final_stats=1", str(directory)]
    print(f"seed {seed}; a finding is written to {WORKING}/{name}-*, which --replay checks again", flush=True)
    command = [sys.executable, "-m", "tests.fuzz.engine", name, *flags]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode


def working_corpus(name: str) -> Path:
    """Where a run keeps what it has found."""
    directory = WORKING / "corpus" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def minimise(name: str) -> int:
    """Choose the inputs to be kept in the repository."""
    fuzz_target = target(name)
    inputs = [*corpus(name), *fuzz_target.seeds(), *(file.read_bytes() for file in working_corpus(name).iterdir())]
    chosen = minimised(inputs, fuzz_target.check)
    keep(name, chosen)
    print(f"{name}: {len(chosen)} of {len(set(inputs))} inputs are kept, {sum(map(len, chosen))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
