"""Copies of the source tree, fresh environments, and the packages installed in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path

from tests.support.processes.server import ROOT, BarnabasServer

_NEVER = (
    "**/__pycache__",
    "**/*.so",
    ".git",
    ".venv",
    ".cache",
    ".*_cache",
    ".hypothesis",
    "*.egg-info",
    "build",
    "dist",
)
_PLAIN = {"PATH": "/usr/bin:/bin"}
"""An environment of processes in which nothing says where the source tree is."""


def copy_tree(target: Path, ignored: tuple[str, ...] = ()) -> Path:
    """Copy the source tree without generated files and without files that the patterns of a .dockerignore exclude.

    Links are copied as links, as git and Docker's COPY do.
    """
    patterns = (*_NEVER, *ignored)

    def left_out(directory: str, names: list[str]) -> set[str]:
        place = Path(directory).relative_to(ROOT)
        return {name for name in names if any(_matches(place / name, pattern) for pattern in patterns)}

    shutil.copytree(ROOT, target, symlinks=True, ignore=left_out)
    return target


def _matches(path: Path, pattern: str) -> bool:
    """Whether a pattern of .dockerignore names this path: from the root, unless it begins with `**/`."""
    if pattern.startswith("**/"):
        return fnmatch(path.name, pattern[3:])
    return fnmatch(str(path), pattern)


class Environment:
    """A virtual environment with nothing installed. What Barnabas depends on is found in the tests' own environment."""

    def __init__(self, root: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        self.python = root / "bin" / "python"
        self.script = root / "bin" / "barnabas"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site_packages = root / "lib" / version / "site-packages"
        paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
        (self.site_packages / "dependencies.pth").write_text("\n".join(paths))

    def pip_install(self, *arguments: str) -> None:
        """Run `pip install` for this environment, without downloads."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed"]
        subprocess.run([*command, *options, "--disable-pip-version-check", *arguments], cwd="/", check=True)

    def installed(self) -> set[str]:
        """The names at the top of site-packages, without versions."""
        names = {path.name for path in self.site_packages.iterdir()} - {"dependencies.pth", "__pycache__"}
        return {name.partition("-")[0] + Path(name).suffix if "-" in name else name for name in names}

    def run(self, code: str) -> str:
        """The output of Python code, run in a directory where there is nothing to import."""
        done = subprocess.run(
            [self.python, "-c", code], cwd="/", stdout=subprocess.PIPE, text=True, check=True, env=_PLAIN
        )
        return done.stdout.strip()

    def imported_file(self, module: str = "barnabas") -> Path:
        """The file that a module is imported from, links resolved."""
        return Path(self.run(f"import {module}; print({module}.__file__)")).resolve()


class InstalledServer(BarnabasServer):
    """`barnabas serve` as it is installed in an environment."""

    def __init__(self, environment: Environment, data_dir: Path) -> None:
        super().__init__(data_dir)
        self.script = environment.script

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, _ = super()._command()
        return [str(self.script), *command[3:]], _PLAIN

    def spawn(self) -> None:
        """Start the process where there is nothing to import."""
        command, environment = self._command()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd="/"
            )

    def client(self, *arguments: str, stdin: str = "") -> str:
        """The output of another command of the same installation."""
        done = subprocess.run(
            [self.script, *arguments], input=stdin, stdout=subprocess.PIPE, text=True, check=True, cwd="/",
            env={**_PLAIN, "BARNABAS_BOOTSTRAP_SERVERS": self.bootstrap}, timeout=60,
        )  # fmt: skip
        return done.stdout
