"""Modules that are loaded at their first use: once, whoever uses them, and only then."""

from __future__ import annotations

import inspect
import platform
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.lazy_modules import KNOWN, PLACES, import_lazily

CODE = """
import sys
times = sys.modules["times_loaded"]
times.count += 1
if times.fails:
    raise ImportError("not now")
from helper_of_lazy import asks
later = "value"
class Thing:
    pass
"""
HELPER = """
import lazy_example
asks = getattr(lazy_example, "later", None)  # a name that it does not have yet
"""


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module on the path, and how often its code has run."""
    (tmp_path / "lazy_example.py").write_text(CODE)
    (tmp_path / "helper_of_lazy.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    times = ModuleType("times_loaded")
    times.__dict__.update(count=0, fails=False)
    monkeypatch.setitem(sys.modules, "times_loaded", times)
    for name in ("lazy_example", "helper_of_lazy"):
        monkeypatch.setitem(sys.modules, name, times)  # restored, so removed, at the end
        del sys.modules[name]
    import_lazily(["lazy_example", "no_such_module", "json"])
    return times


def test_a_module_is_loaded_with_its_first_attribute(times: ModuleType) -> None:
    lazy = import_module("lazy_example")
    assert inspect.getmodule(lazy) is lazy  # looks at all modules
    assert not hasattr(lazy, "__warningregistry__")
    assert lazy.__spec__ is not None
    assert times.count == 0
    assert lazy.later == "value"
    assert (times.count, lazy.asks) == (1, None)
    assert type(lazy) is ModuleType
    assert lazy.Thing.__module__ == "lazy_example"
    with pytest.raises(AttributeError, match="nothing"):
        _ = lazy.nothing
    assert times.count == 1
    assert "no_such_module" not in sys.modules
    assert type(sys.modules["json"]) is ModuleType, "it was imported before"


def test_a_module_that_cannot_be_loaded_is_tried_again(times: ModuleType) -> None:
    times.fails = True
    lazy = import_module("lazy_example")
    for _ in range(2):
        with pytest.raises(ImportError, match="not now"):
            _ = lazy.later
    times.fails = False
    assert lazy.later == "value"
    assert times.count == 3


def test_threads_load_it_once(times: ModuleType) -> None:
    lazy = import_module("lazy_example")
    begin = threading.Barrier(8)
    values: list[str] = []

    def use() -> None:
        begin.wait()
        values.append(lazy.later)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == ["value"] * 8
    assert times.count == 1


def test_known_names_are_those_of_the_modules() -> None:
    for package, places in PLACES.items():
        whole = import_module(package)
        for name, place in places.items():
            part = import_module(f"trio.{place or name}")
            assert getattr(whole, name) is (getattr(part, name) if place else part), name
    for name, function in KNOWN["platform"].items():
        assert function() == getattr(platform, name)()


PART_OF_TRIO = """
import sys
from barnabas.lazy_modules import OF_SERVE, import_lazily
import_lazily(OF_SERVE)
import ctypes
import trio
import trio.lowlevel
processes = []
sys.addaudithook(lambda event, arguments: processes.append(arguments) if event == "subprocess.Popen" else None)
async def main():
    with trio.move_on_after(0):
        await trio.sleep_forever()
    await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(trio.Event)
trio.run(main)
loaded = {name for name, module in sys.modules.items() if not type(module).__name__.startswith("_Lazy")}
rest = {"trio", "trio.lowlevel", "trio._dtls", "trio._subprocess", "ctypes.util", "platform"}
print(*sorted(loaded & rest), processes)
assert trio.Path("a").name == "a"
assert trio.lowlevel.open_process is not None
assert trio.lowlevel.checkpoint is trio._core.checkpoint and trio.run.__module__ == "trio"
assert trio.__version__
print(ctypes.util.find_library("no_such_library"), sys.modules["platform"].machine())
"""


def test_a_broker_imports_a_part_of_trio_without_a_process_and_the_rest_with_another_name() -> None:
    ran = subprocess.run([sys.executable, "-c", PART_OF_TRIO], capture_output=True, text=True, check=True)
    assert ran.stdout == f"[]\nNone {platform.machine()}\n"
