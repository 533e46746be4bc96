"""`barnabas clock` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from barnabas.testing import Broker


def _clock(*arguments: str, control: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "BARNABAS_CONTROL"}
    if control is not None:
        environment["BARNABAS_CONTROL"] = control
    command = [sys.executable, "-m", "barnabas", "clock", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_clock_of_a_cluster_is_frozen_and_advanced(barnabas_broker: Broker, tmp_path: Path) -> None:
    kafka = barnabas_broker.open()
    number = str(kafka._link.number)
    address = barnabas_broker.channel.url.removeprefix("http://")
    control = f"http://{barnabas_broker.channel.token}@{address}"
    file = tmp_path / "control.json"
    file.write_text(json.dumps({"control": barnabas_broker.channel.url, "token": barnabas_broker.channel.token}))

    def told(*arguments: str) -> dict[str, object]:
        done = _clock(*arguments, "--cluster", number, "-o", "json", control=control)
        assert done.returncode == 0, done.stderr
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    frozen = told("freeze")
    assert frozen["frozen"] is True
    assert told("now") == frozen
    done = _clock("advance", "7d", "--control-file", str(file), "--cluster", number)
    assert done.returncode == 0, done.stderr
    assert "7d" not in done.stdout
    assert told("now")["now"] > frozen["now"]  # type: ignore[operator]
    assert told("resume")["frozen"] is False
    kafka.close()


def test_mistakes_are_one_sentence(barnabas_broker: Broker, tmp_path: Path) -> None:
    none = _clock("now")
    assert (none.returncode, none.stdout) == (2, "")
    assert "Give --control-file FILE, or set BARNABAS_CONTROL" in none.stderr.replace("\n", " ")
    wrong = _clock("now", "--control", "127.0.0.1:1")
    assert wrong.returncode == 2
    assert "http://TOKEN@HOST:PORT" in wrong.stderr
    address = barnabas_broker.channel.url.removeprefix("http://")
    stranger = _clock("now", "--control", f"http://guess@{address}")
    assert stranger.returncode == 1
    gone = _clock("now", "--cluster", "99999", "--control", f"http://{barnabas_broker.channel.token}@{address}")
    assert gone.returncode == 1
    assert "There is no cluster 99999" in gone.stderr
    file = tmp_path / "file.json"
    file.write_text("{")
    assert "no control file" in _clock("now", "--control-file", str(file)).stderr
    assert "is not a duration" in _clock("advance", "soon", "--control-file", str(file)).stderr
    for said in (none, wrong, stranger, gone):
        assert "Traceback" not in said.stderr
