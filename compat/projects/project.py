"""A project of others: its archive from the package index, unpacked as it is, and an environment of its own.

Archive and environment are kept in `.cache/projects/NAME`, so the network is needed once. The archive is unpacked for
each run, outside of this tree, so that no configuration of ours is found.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "projects"
DECLARED = Path(__file__).with_name("projects.toml")


class ProjectError(Exception):
    """A project that cannot be fetched or installed: one sentence, and pip's output."""


@dataclass(frozen=True)
class Project:
    """A project's entry in `projects.toml`."""

    name: str
    version: str
    requirements: Sequence[str]
    arguments: Sequence[str]
    passed: int
    skipped: int
    extras: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return CACHE / self.name

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.folder / "environment" / "bin" / "python"

    def pytest_arguments(self, port: int) -> list[str]:
        """pytest's arguments for a broker on this port."""
        left_out = [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in self.left_out]
        return [argument.format(port=port) for argument in self.arguments] + left_out

    def variables(self, port: int) -> dict[str, str]:
        """The variables of its environment for a broker on this port."""
        return {name: value.format(port=port) for name, value in self.environment.items()}

    def archive(self) -> Path:
        """Its source archive, downloaded if it is not there. ProjectError if the index does not have it."""
        archive = self._downloaded()
        if archive is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            where = ["--no-deps", "--no-binary", self.name, "--dest", str(self.folder)]
            _pip("download", *where, f"{self.name}=={self.version}")
            archive = self._downloaded()
        if archive is None:
            raise ProjectError(f"{self.name} {self.version} has no source archive")
        return archive

    def _downloaded(self) -> Path | None:
        return next(iter(self.folder.glob(f"*-{self.version}.tar.gz")), None)

    def unpack(self, target: Path) -> Path:
        """Unpack its files into an empty folder; the folder in it that has them."""
        with tarfile.open(self.archive()) as archive:
            archive.extractall(target, filter="data")
        (folder,) = target.iterdir()
        return folder

    def install(self) -> None:
        """Make its environment: the project, its tests' packages, and this tree's Barnabas. Once for each declaration.

        ProjectError if pip fails.
        """
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        requirements = [f"{self.archive()}{extras}", *self.requirements]
        done = self.folder / "installed.txt"
        if done.exists() and done.read_text().splitlines() == requirements:
            return
        done.unlink(missing_ok=True)
        environment = self.python.parents[1]
        rmtree(environment, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        _pip("--python", str(self.python), "install", "--no-compile", "--editable", str(ROOT), *requirements)
        done.write_text("\n".join(requirements))


def _pip(*arguments: str) -> None:
    """Run pip. ProjectError with its last words if it fails."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise ProjectError(f"pip failed:\n{done.stdout[-2000:].strip()}")


def projects() -> dict[str, Project]:
    """All projects, by name."""
    declared = tomllib.loads(DECLARED.read_text())
    return {name: Project(name, **values) for name, values in declared.items()}
