"""Programs in Go: built once from their sources, into `.cache/go`.

`python -m compat.go_program` builds them all, where Go is installed: a build takes a minute of CPU.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.jvm.jars import ROOT

OLDEST = (1, 21)
"""Downloads the toolchain that a go.mod names."""


def has_go() -> bool:
    """Whether Go 1.21 or later is installed."""
    if not shutil.which("go"):
        return False
    output = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", output)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST


def built(folder: Path) -> Path:
    """The path of the program in a folder, built unless it has been built from the same sources before."""
    sources = [*sorted(folder.glob("*.go")), folder / "go.mod"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    program = ROOT / ".cache" / "go" / f"{folder.name}-{digest}"
    program.parent.mkdir(parents=True, exist_ok=True)
    with program.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            print(f"Building {folder.name} with Go, once", file=sys.stderr)
            subprocess.run(["go", "build", "-o", str(program), "."], cwd=folder, check=True)
    return program


def main() -> int:
    """Build the programs of all folders."""
    if has_go():
        for module in sorted((ROOT / "compat").glob("*/go.mod")):
            built(module.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
