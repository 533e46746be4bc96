"""Compiles the Java programs of a folder, once, into `.cache/classes`."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

from tests.support.jvm.host import compile_java
from tests.support.jvm.jars import ROOT, artifact_id, jars


def compiled(folder: Path, pom: Path) -> Path:
    """The folder with the classes of all Java sources of a folder, compiled with the pom's jars if necessary."""
    sources = sorted(folder.glob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [*sources, pom])).hexdigest()[:16]
    target = ROOT / ".cache" / "classes" / f"{artifact_id(pom)}-{digest}"
    target.mkdir(parents=True, exist_ok=True)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "done").exists():
            class_path = os.pathsep.join(map(str, jars(pom)))
            done = compile_java("-cp", class_path, "-proc:none", "-d", str(target), *map(str, sources))
            if done.code != 0:
                raise RuntimeError(f"javac {folder}:\n{done.out}{done.errors}")
            (target / "done").touch()
    return target
