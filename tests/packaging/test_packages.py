"""The packages built from the source tree and installed: one top-level name, every file once, a broker that serves.

`wire`, `storage`, `coord` and `broker` stand at the top of the tree and are links in `barnabas/`; wheel, sdist,
editable installation and the container's `COPY` and `pip install` must each make one package of them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import barnabas
from tests.support.archives import unpack
from tests.support.processes.server import ROOT
from tests.support.source import PACKAGES
from tests.support.trees import Environment, InstalledServer, copy_tree

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]
ACCELERATOR = "barnabas/wire/batches/_valid_records"
LINKS = [name for name in PACKAGES if name != "barnabas"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the sdist, and the wheel that is built from the sdist."""
    root = tmp_path_factory.mktemp("build")
    tree = copy_tree(root / "tree")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(root / "dist"), str(tree)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return root / "dist"


@pytest.fixture
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("barnabas-*.whl")
    return path


@pytest.fixture
def sdist(dist: Path) -> Path:
    (path,) = dist.glob("barnabas-*.tar.gz")
    return path


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def files_of_the_package() -> set[str]:
    """The files of the tree that belong into the package: Python, and the data files that are read at run time."""
    suffixes = {".py", ".pyi", ".typed", ".xml", ".html", ".toml", ".json", ".js", ".css", ".svg", ".LICENSE"}
    paths = (path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in suffixes)
    own = (path.relative_to(ROOT) for path in paths if path.resolve() == path and "__pycache__" not in path.parts)
    return {str(path) if path.parts[0] == "barnabas" else f"barnabas/{path}" for path in own}


def can_compile() -> bool:
    """Whether there are a C compiler and Python's headers."""
    compiler = str(sysconfig.get_config_var("CC")).split()[0]
    return shutil.which(compiler) is not None and (Path(sysconfig.get_path("include")) / "Python.h").exists()


def check_serves(environment: Environment, data_dir: Path) -> None:
    """The installed broker starts, stores a record and gives it back, to the installed command line."""
    with InstalledServer(environment, data_dir) as server:
        assert isinstance(server, InstalledServer)
        server.client("topic", "create", "greetings")
        server.client("produce", "greetings", stdin="hello\n")
        assert server.client("consume", "greetings", "--exit").strip() == "hello"
    assert server.process is not None
    assert server.process.returncode == 0


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert set(names) == files_of_the_package() | ({f"{ACCELERATOR}.abi3.so"} if can_compile() else set())
    assert len(names) == len(set(names))


def test_wheel_needs_no_compiler(
    sdist: Path, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sdist has the source of the accelerator; where that cannot be compiled, the broker serves without it."""
    with tarfile.open(sdist) as archive:
        assert [name for name in archive.getnames() if name.endswith(f"{ACCELERATOR}.c")]
    monkeypatch.setenv("CC", "/bin/false")
    environment.pip_install(str(sdist))
    output = environment.run("from barnabas.wire.batches import plain_records; print(plain_records.valid_records)")
    assert output == "None"
    check_serves(environment, tmp_path / "data")


def test_installed_wheel_is_one_name_and_serves(wheel: Path, environment: Environment, tmp_path: Path) -> None:
    environment.pip_install(str(wheel))
    assert environment.installed() == {"barnabas", "barnabas.dist-info"}
    assert environment.imported_file("barnabas.wire").is_relative_to(environment.site_packages)
    check_serves(environment, tmp_path / "data")


def test_sdist_has_each_file_once(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    names = [member.name.partition("/")[2] for member in members if member.isfile()]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert {name for name in names if name.endswith(".py")} == {
        name for name in files_of_the_package() if name.endswith(".py")
    }
    unpacked = unpack(sdist, tmp_path / "sdist")
    contents = Counter(
        hashlib.sha256(path.read_bytes()).digest() for path in unpacked.rglob("*.py") if path.stat().st_size > 400
    )
    assert max(contents.values()) == 1


def test_release_recipe_accepts_what_is_built(dist: Path) -> None:
    """`twine check` of CONTRIBUTING.md: the metadata is complete, and the description can be rendered."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2, done.stdout


def test_wheel_has_version_and_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata_name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(metadata_name).decode()
        licenses = {
            Path(name).name: archive.read(name) for name in archive.namelist() if ".dist-info/licenses/" in name
        }
    assert f"\nVersion: {barnabas.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert licenses == {name: (ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE")}


def test_installed_sdist_is_one_name_and_serves(sdist: Path, environment: Environment, tmp_path: Path) -> None:
    environment.pip_install(str(sdist))
    assert environment.installed() == {"barnabas", "barnabas.dist-info"}
    check_serves(environment, tmp_path / "data")


def test_editable_installation_imports_the_tree(environment: Environment, tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    environment.pip_install("--editable", str(tree))
    for name in LINKS:
        assert environment.imported_file(f"barnabas.{name}") == tree / name / "__init__.py"
        output = environment.run(f"import importlib.util; print(importlib.util.find_spec({name!r}))")
        assert output == "None", f"{name} can be imported without barnabas"
    check_serves(environment, tmp_path / "data")


def test_steps_of_the_dockerfile_install_a_broker_that_serves(environment: Environment, tmp_path: Path) -> None:
    """COPY with .dockerignore, then the pip command of the RUN step, then removing the copy."""
    ignored = tuple(
        line for line in (ROOT / ".dockerignore").read_text().split("\n") if line and not line.startswith("#")
    )
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^COPY \. /usr/src/barnabas$", dockerfile, re.MULTILINE)
    assert re.search(r"^RUN pip install --no-cache-dir /usr/src/barnabas ", dockerfile, re.MULTILINE)
    tree = copy_tree(tmp_path / "src", ignored)
    assert {path.name for path in tree.iterdir()}.isdisjoint({"tests", "docs", "bench", "compat"})
    environment.pip_install("--no-cache-dir", str(tree))
    tree.rename(tmp_path / "removed")
    assert environment.installed() == {"barnabas", "barnabas.dist-info"}
    check_serves(environment, tmp_path / "data")
