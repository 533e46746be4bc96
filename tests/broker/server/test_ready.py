"""The lines of a start: the ready line on stdout is also in the log."""

from __future__ import annotations

import io
import logging

import pytest

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.start.ready import announce, announce_controller

BOUND = Endpoint("PLAINTEXT", "127.0.0.1", 9092)


@pytest.mark.parametrize("who", ["KafkaServer", "ControllerServer"])
def test_the_log_has_the_line_before_stdout(
    who: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logged: list[bool] = []

    class Stdout(io.StringIO):
        """Looks into the log when it is written to."""

        def write(self, text: str) -> int:
            logged.append(f"[{who} id=7] started on" in caplog.text)
            return super().write(text)

    caplog.set_level(logging.INFO)
    stdout = Stdout()
    monkeypatch.setattr("sys.stdout", stdout)
    if who == "KafkaServer":
        announce(7, [BOUND], {}, None)
    else:
        announce_controller(7, [BOUND], None)
    assert f"[{who} id=7] started on" in stdout.getvalue()
    assert logged
    assert all(logged)
