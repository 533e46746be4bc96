"""The process of a node: what it inherits from its supervisor."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from barnabas.supervise import node


def test_a_signal_right_after_the_fork_ends_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came to the supervisor's handler in the child, which only noted it: the node served until it was killed."""
    forked = os.fork

    def fork_and_signal() -> int:
        pid = forked()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return pid

    noted: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: noted.append(number))
    try:
        monkeypatch.setattr(node.os, "fork", fork_and_signal)
        pid = node.fork(lambda: 3, str(tmp_path / "log"), lambda: None)
        _, status = os.waitpid(pid, 0)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert node.how_it_ended(status) == "killed by SIGTERM"
    assert noted == []
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_node_ends_with_the_code_of_its_body_and_logs_to_its_file(tmp_path: Path) -> None:
    def body() -> int:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        os.write(1, f"blocked: {sorted(blocked & node.RESTORED)}\n".encode())
        return 3

    def in_child() -> None:
        os.write(1, b"let go\n")

    pid = node.fork(body, str(tmp_path / "log"), in_child)
    _, status = os.waitpid(pid, 0)
    assert node.how_it_ended(status) == "exit code 3"
    assert (tmp_path / "log").read_text() == "let go\nblocked: []\n"
