"""`barnabas clock` on the command line."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from barnabas.testing import Broker
from tests.support.processes.commands import Ran, run_barnabas


def _clock(*arguments: str, control: str | None = None) -> Ran:
    environment = {key: value for key, value in os.environ.items() if key != "BARNABAS_CONTROL"}
    if control is not None:
        environment["BARNABAS_CONTROL"] = control
    return Ran(run_barnabas(["clock", *arguments], environment))


def test_the_clock_of_a_cluster_is_frozen_and_advanced(barnabas_broker: Broker, tmp_path: Path) -> None:
    kafka = barnabas_broker.open()
    number = str(kafka._link.number)
    address = barnabas_broker.channel.url.removeprefix("http://")
    control = f"http://{barnabas_broker.channel.token}@{address}"
    file = tmp_path / "control.json"
    file.write_text(json.dumps({"control": barnabas_broker.channel.url, "token": barnabas_broker.channel.token}))

    def printed(*arguments: str) -> dict[str, object]:
        done = _clock(*arguments, "--cluster", number, "-o", "json", control=control)
        assert done.code == 0, done.stderr
        result: dict[str, object] = json.loads(done.stdout)
        return result

    frozen = printed("freeze")
    assert frozen["frozen"] is True
    assert printed("now") == frozen
    done = _clock("advance", "7d", "--control-file", str(file), "--cluster", number)
    assert done.code == 0, done.stderr
    assert "7d" not in done.stdout
    assert printed("now")["now"] > frozen["now"]  # type: ignore[operator]
    assert printed("jump", "2031-02-03T04:05:06+01:00") == {"now": "2031-02-03T03:05:06.000Z", "frozen": True}
    assert printed("jump", "2020-01-01")["now"] == "2020-01-01T00:00:00.000Z"
    assert kafka.clock.now == datetime(2020, 1, 1, tzinfo=UTC)
    assert printed("resume")["frozen"] is False
    kafka.close()


def test_mistakes_are_one_sentence(barnabas_broker: Broker, tmp_path: Path) -> None:
    none = _clock("now")
    assert (none.code, none.stdout) == (2, "")
    assert "Give --control-file FILE, or set BARNABAS_CONTROL" in none.stderr.replace("\n", " ")
    wrong = _clock("now", "--control", "127.0.0.1:1")
    assert wrong.code == 2
    assert "http://TOKEN@HOST:PORT" in wrong.stderr
    address = barnabas_broker.channel.url.removeprefix("http://")
    stranger = _clock("now", "--control", f"http://guess@{address}")
    assert stranger.code == 1
    gone = _clock("now", "--cluster", "99999", "--control", f"http://{barnabas_broker.channel.token}@{address}")
    assert gone.code == 1
    assert "There is no cluster 99999" in gone.stderr
    file = tmp_path / "file.json"
    file.write_text("{")
    assert "no control file" in _clock("now", "--control-file", str(file)).stderr
    assert "is not a date such as 2026-12-24" in _clock("jump", "soon", "--control-file", str(file)).stderr
    early = _clock("jump", "1969-01-01", "--control", f"http://{barnabas_broker.channel.token}@{address}")
    assert (early.code, "The date must be from 1970 to 9999" in early.stderr) == (1, True)
    assert "is not a duration" in _clock("advance", "soon", "--control-file", str(file)).stderr
    for ended in (none, wrong, stranger, gone):
        assert "Traceback" not in ended.stderr
