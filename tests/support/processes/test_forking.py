"""A run in a fork is what `python -m MODULE` is in a new interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.processes.forking import ForkServer

FORKS = ForkServer("colorsys")
SHOWN = """
import atexit, os, signal, sys, time
print(sys.argv[1:], os.getcwd(), os.environ.get("SHOWN"), __name__)
print(sys.path[0], signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(sys.stdin.read(), sys.stdin.isatty(), time.strftime("%z", time.localtime(0)))
print(sorted(name for name in os.listdir("/dev/fd")))
print("an error", file=sys.stderr)
atexit.register(print, "at the end")
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def module(tmp_path: Path):
    """Writes the module `shown` of the directory."""

    def write(text: str) -> Path:
        (tmp_path / "shown.py").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("zone", ["UTC", "EST5"])
def test_it_is_like_a_new_interpreter(module, zone: str) -> None:
    folder = module(SHOWN)
    environment = {name: value for name, value in os.environ.items() if name != "HOME"} | {"SHOWN": "x", "TZ": zone}
    forked = FORKS.run("shown", ["3", "a b"], cwd=folder, env=environment, stdin=b"some input")
    command = [sys.executable, "-m", "shown", "3", "a b"]
    new = subprocess.run(command, cwd=folder, env=environment, input=b"some input", capture_output=True, check=False)
    assert forked.stdout.decode() == new.stdout.decode()
    assert (forked.stderr, forked.returncode) == (new.stderr, new.returncode) == (b"an error\n", 3)
    assert forked.stdout.endswith(b"at the end\n")


def test_the_modules_are_there_and_a_run_leaves_nothing(module) -> None:
    folder = module("import sys; print('colorsys' in sys.modules, hasattr(sys, 'left')); sys.left = 1")
    for _ in range(2):
        assert FORKS.run("shown", [], cwd=folder).stdout == b"True False\n"


def test_an_exception_and_a_signal_end_it(module) -> None:
    failed = FORKS.run("shown", [], cwd=module("raise ValueError('of the module')"))
    assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, b"ValueError: of the module")
    killed = FORKS.run("shown", [], cwd=module("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"))
    assert killed.returncode == -signal.SIGTERM


def test_input_that_is_not_read_keeps_nobody(module) -> None:
    assert (
        FORKS.run("shown", [], cwd=module("print('x' * 300_000)"), stdin=b"x" * 1_000_000).stdout
        == b"x" * 300_000 + b"\n"
    )


def test_a_run_that_does_not_end_is_killed(module) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        FORKS.run("shown", [], cwd=module("import time; time.sleep(1000)"), timeout=0.1)
    assert FORKS.run("shown", [], cwd=module("print('next')")).stdout == b"next\n"


def test_an_interrupted_run_is_not_mixed_up_with_the_next(module) -> None:
    folder = module("import sys, time; time.sleep(1000 * int(sys.argv[1])); sys.exit(7)")
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        FORKS.run("shown", ["1"], cwd=folder)
    assert FORKS.run("shown", ["0"], cwd=folder).returncode == 7


def test_what_only_a_new_interpreter_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="only a new interpreter reads"):
        FORKS.run("shown", [], env={**os.environ, "PYTHONPATH": "elsewhere"})
