"""The byte code compiled before a parallel run is the byte code that pytest and Python look for."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.support.measuring import bytecode

SOURCE = "def test_one():\n    assert 1 == 2\n"


@pytest.fixture(autouse=True)
def _in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytecode, "_config", request.config, raising=False)


def test_assertions_are_rewritten_where_pytest_finds_them(tmp_path: Path) -> None:
    path = tmp_path / "test_one.py"
    path.write_text(SOURCE)
    assert bytecode.rewrite_assertions(path)
    code = rewrite._read_pyc(path, rewrite.get_cache_dir(path) / f"test_one{rewrite.PYC_TAIL}")
    assert code is not None
    assert "@pytest_ar" in code.co_names
    assert not bytecode.rewrite_assertions(path)
    path.write_text(SOURCE.replace("2", "3"))
    assert bytecode.rewrite_assertions(path)


def test_other_files_are_compiled(tmp_path: Path) -> None:
    path = tmp_path / "helper.py"
    path.write_text(SOURCE)
    bytecode.compile_file(path)
    assert Path(cache_from_source(str(path))).is_file()


def test_errors_are_left_to_who_imports_the_file(tmp_path: Path) -> None:
    for name in ("test_broken.py", "broken.py"):
        (tmp_path / name).write_text("def (")
    assert not bytecode.rewrite_assertions(tmp_path / "test_broken.py")
    bytecode.compile_file(tmp_path / "broken.py")


def test_all_files_are_there(request: pytest.FixtureRequest) -> None:
    assert request.path in set(bytecode.with_assertions())
    others = set(bytecode.without())
    assert Path(bytecode.__file__) in others
    assert bytecode.ROOT / "broker" / "server.py" in others
    assert not others & set(bytecode.with_assertions())
