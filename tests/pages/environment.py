"""The fresh virtual environment of a page: it has the packages that the page says to install, and no others.

`pip` in it is this module: it installs without a network, by links, exactly what metadata and the requested extras ask
for. Barnabas is the wheel of a clean copy of the checkout, which is built and unpacked once a run; every other
distribution is the one of the tests' environment. So a page fails if it uses a package that it does not say to install.
A test marked `soak` follows the README with the real pip.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SHARED = "PAGES_SHARED"
"""The variable that tells `pip` the directory of the run, where Barnabas is."""
_SCRIPT = "#!{python}\nimport sys\nfrom {module} import {name}\nsys.exit({attribute}())\n"
_PIP = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.pages.environment import pip
sys.exit(pip({environment!r}, sys.argv[1:]))
"""


def install_wheel(shared: Path) -> Path:
    """The directory in `shared` in which the wheel of a clean copy of the checkout is installed.

    The first call does it; calls of other test processes wait.
    """
    from tests.support.trees import copy_tree

    shared.mkdir(parents=True, exist_ok=True)
    installed = shared / "installed"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.is_dir():
            tree, wheels, target = copy_tree(shared / "tree"), shared / "wheels", shared / "made"
            _pip("wheel", "--no-build-isolation", "--wheel-dir", str(wheels), str(tree))
            (wheel,) = wheels.glob("*.whl")
            _pip("install", "--target", str(target), str(wheel))
            target.rename(installed)
    return installed


def _pip(command: str, *arguments: str) -> None:
    """Run the real pip, without a network."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", command, *options, *arguments], cwd="/", check=True, timeout=300)


class PageEnvironment:
    """A virtual environment at `root`; its `pip` installs offline."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.python = self.bin / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site_packages = root / "lib" / version / "site-packages"

    def create(self) -> PageEnvironment:
        """Make it, with nothing but `pip`."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.root)], check=True, timeout=120)
        self._script("pip", _PIP.format(python=sys.executable, root=str(ROOT), environment=str(self.root)))
        return self

    def create_with_pip(self) -> PageEnvironment:
        """Make it with the real pip, which uses the network."""
        subprocess.run([sys.executable, "-m", "venv", str(self.root)], check=True, timeout=300)
        return self

    def install(self, requirement: Requirement, shared: Path, clone: Path | None = None) -> None:
        """Install a distribution and all that it requires; LookupError if the tests' environment does not have it.

        With `clone`, Barnabas is the package of that directory, as after `pip install -e`.
        """
        seen: set[tuple[str, str]] = set()
        for name, dist in _closure(requirement, seen):
            if name == "barnabas" and clone is None:
                (dist,) = distributions(path=[str(install_wheel(shared))])
            self._link(dist, clone if name == "barnabas" else None)

    def _link(self, dist: Distribution, clone: Path | None) -> None:
        base = Path(str(dist.locate_file("")))
        tops = {file.parts[0] for file in dist.files or [] if file.parts[0] not in ("..", "__pycache__")}
        if clone is not None:
            (self.site_packages / "barnabas.pth").write_text(f"{clone.resolve()}\n")
            tops = {top for top in tops if top.endswith(".dist-info")}
        for top in tops:
            self._symlink(self.site_packages / top, base / top)
        points = dist.entry_points.select(group="console_scripts")
        for point in points:
            name = point.attr.partition(".")[0]
            script = _SCRIPT.format(python=self.python, module=point.module, name=name, attribute=point.attr)
            self._script(point.name, script)
        for file in dist.files or []:
            if (
                file.parts[-2:-1] == ("bin",)
                and file.parts[0] == ".."
                and file.name not in {point.name for point in points}
            ):
                self._symlink(self.bin / file.name, Path(str(file.locate())).resolve())

    def _script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    @staticmethod
    def _symlink(link: Path, target: Path) -> None:
        if not link.exists() and target.exists():
            link.symlink_to(target)


def _closure(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[tuple[str, Distribution]]:
    """The distributions that a requirement stands for, each at least once."""
    name = canonicalize_name(requirement.name)
    installed = [
        path for path in sys.path if path not in ("", str(ROOT))
    ]  # a clone may have the metadata of an old build
    dist = next(iter(distributions(name=name, path=installed)), None)
    if dist is None:
        raise LookupError(f"{requirement}: the tests' environment has no {name}; name it in the extra `test`")
    if not requirement.specifier.contains(dist.version, prereleases=True):
        raise LookupError(f"{requirement}: the tests' environment has {dist.version}")
    for extra in ("", *sorted(requirement.extras)):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if not extra:
            yield name, dist
        elif canonicalize_name(extra) not in map(canonicalize_name, dist.metadata.get_all("Provides-Extra") or []):
            raise LookupError(f"{name} has no extra {extra}")
        for line in dist.requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                yield from _closure(needed, seen)


def pip(environment: str, arguments: list[str]) -> int:
    """The command `pip` of a page's environment: `pip install [-q] [-e] REQUIREMENT...`; returns the exit code."""
    command, *rest = [argument for argument in arguments if argument not in ("-q", "--quiet", "-e")] or [""]
    is_editable = "-e" in arguments
    if command != "install" or not rest or any(word.startswith("-") for word in rest):
        print(
            f"pip {' '.join(arguments)}: pages are tested with `pip install [-q] [-e] REQUIREMENT...` only",
            file=sys.stderr,
        )
        return 2
    for word in rest:
        try:
            requirement = _requirement(word)
            clone = Path(word.partition("[")[0]) if is_editable else None
            PageEnvironment(Path(environment)).install(requirement, Path(os.environ[SHARED]), clone)
        except (InvalidRequirement, LookupError) as error:
            print(f"pip install {word}: {error}", file=sys.stderr)
            return 1
    return 0


def _requirement(word: str) -> Requirement:
    """A requirement as it is written; `.`, `.[extra]` and `./DIRECTORY` are clones."""
    if not word.startswith("."):
        requirement = Requirement(word)
        if canonicalize_name(requirement.name) == "barnabas":
            raise LookupError(
                "no release of barnabas is on an index yet: install it from a clone, with `pip install .`"
            )
        return requirement
    directory, bracket, extras = word.partition("[")
    if not Path(directory, "pyproject.toml").exists():
        raise LookupError(f"the directory {directory} is no clone")
    return Requirement(f"barnabas{bracket}{extras}")
