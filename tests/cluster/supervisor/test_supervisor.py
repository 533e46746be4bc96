"""`barnabas serve --brokers N` and the commands that work with its nodes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from barnabas.supervise import state
from barnabas.supervise.lock import take_directory
from barnabas.supervise.members import Members
from barnabas.supervise.options import ClusterOptions
from barnabas.supervise.supervisor import SAVE_AGAIN_S, Supervisor
from tests.support.disks.failing_files import FailingFiles
from tests.support.processes.commands import COMMAND, Ran, call_command, clean_environment, run_command
from tests.support.waiting import ANY_ERROR, wait_for

END_S = 60.0
"""How long a supervisor may take for a clean stop, seconds."""


class Serving:
    """A supervisor whose ready file is waited for."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.data_dir = str(folder / "cluster")
        self.ready = folder / "ready"
        self.ready.unlink(missing_ok=True)
        command = [*COMMAND, "serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", self.data_dir]
        command += ["--ready-file", str(self.ready), *arguments]
        with (folder / "err").open("wb") as err, (folder / "out").open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=clean_environment())
        wait_for(lambda: self.ready.exists() or self.process.poll() is not None, "the ready file", errors=ANY_ERROR)
        assert self.process.poll() is None, self.told()

    def told(self) -> str:
        """Its output on stderr."""
        return (self.folder / "err").read_text()

    def command(self, *arguments: str) -> Ran:
        """`barnabas cluster ...` with this cluster's directory."""
        return call_command("cluster", *arguments, "--data-dir", self.data_dir)

    def statuses(self) -> list[str]:
        """The states that `status` shows; empty while a broker that has died is asked, before its session has ended."""
        ran = self.command("status", "-o", "json")
        return [row["state"] for row in ran.json["brokers"]] if ran.code in (0, 1) else []

    def states(self) -> dict[int, str]:
        """The states of the nodes as the supervisor sees them."""
        return {node.node_id: node.state for node in state.read(self.data_dir).nodes}

    def pids(self) -> dict[int, int | None]:
        """The process ids of the nodes."""
        return {node.node_id: node.pid for node in state.read(self.data_dir).nodes}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A cluster of three for the tests of this file, which heal it."""
    started = Serving(tmp_path_factory.mktemp("serving"))
    yield started
    if started.process.poll() is None:
        started.process.send_signal(signal.SIGTERM)
        started.process.wait(END_S)


def test_one_ready_line_has_all_addresses(serving: Serving) -> None:
    addresses = serving.ready.read_text().strip().split(",")
    assert len(addresses) == 3
    out = (serving.folder / "out").read_text()
    assert out.count("started on") == 1
    assert f'"bootstrap.servers": "{",".join(addresses)}"' in out


def test_topics_have_three_replicas_of_which_two_must_be_in_sync(serving: Serving) -> None:
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "replicated", "-p", "2", bootstrap=bootstrap).ok()
    rows = call_command("topic", "describe", "replicated", "-o", "json", bootstrap=bootstrap).ok().json
    assert all(len(partition["replicas"]) == 3 for partition in rows[0]["partitions"])
    configs = call_command("config", "get", "topic", "replicated", "min.insync.replicas", bootstrap=bootstrap)
    assert configs.ok().lines[-1].split()[:2] == ["min.insync.replicas", "2"]


def test_status_shows_nodes_and_loads(serving: Serving) -> None:
    status = serving.command("status", "-o", "json").ok().json
    assert [row["state"] for row in status["brokers"]] == ["online"] * 3
    assert all(row["pid"] == serving.pids()[row["broker"]] for row in status["brokers"])
    assert all(0 <= row["cpu"] <= 1 and 0 <= row["disk"] <= 1 for row in status["brokers"])
    assert all(row["memory"] > 2**20 for row in status["brokers"]), "bytes"
    assert [row["controller"] for row in status["controllers"]] == [3000]


def test_a_killed_broker_is_told_and_started_again(serving: Serving) -> None:
    pid = int(serving.command("pid", "2").ok().stdout)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: serving.states()[2] == "died", "the death", errors=ANY_ERROR)
    wait_for(
        lambda: f"broker 2 (pid {pid}) ended: killed by SIGKILL" in serving.told(), "the sentence", errors=ANY_ERROR
    )
    assert serving.command("pid", "2").code == 3
    states = ["online", "offline", "online"]
    wait_for(lambda: serving.statuses() == states, lambda: f"{states}: they are {serving.statuses()}", errors=ANY_ERROR)
    assert serving.command("status").code == 1
    serving.command("start", "2").ok()
    assert serving.states()[2] == "running"


def test_a_broker_is_stopped_and_killed_by_command(serving: Serving) -> None:
    """The supervisor prints each stop and kill on its terminal, with the reason."""
    pid = serving.pids()[3]
    assert "exit code 0" in serving.command("stop", "3").ok().stdout
    assert f"broker 3 (pid {pid}) ended: exit code 0, as 'barnabas cluster stop' has asked\n" in serving.told()
    again = serving.command("stop", "3")
    assert again.code == 1
    assert "broker 3 does not run" in again.stderr
    health = serving.command("health", "-o", "json")
    assert health.code == 1
    assert {"problem": "down", "what": "broker 3", "detail": "exit code 0"} in health.json["problems"]
    serving.command("start", "3").ok()
    pid = serving.pids()[3]
    assert f"broker 3 (pid {pid}) runs, as 'barnabas cluster start' has asked\n" in serving.told()
    assert "is killed" in serving.command("kill", "3").ok().stdout
    assert f"broker 3 (pid {pid}) ended: killed by SIGKILL, as 'barnabas cluster kill' has asked\n" in serving.told()
    serving.command("start", "3").ok()
    assert "there is no node 9" in serving.command("stop", "9").stderr
    wait_for(lambda: serving.command("health").code == 0, "a healthy cluster", errors=ANY_ERROR)
    assert serving.command("info").ok().stdout.startswith("CLUSTER-ID")


def leaders(serving: Serving) -> dict[int, int]:
    """How many partitions each broker leads."""
    rows = serving.command("status", "-o", "json").json["brokers"]
    return {row["broker"]: row["leaders"] for row in rows}


def test_rebalance_and_drain_go_by_who_leads(serving: Serving) -> None:
    """Broker 3 was stopped: it leads nothing, and the others lead its partitions for it."""
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "spread", "-p", "9", bootstrap=bootstrap).ok()
    serving.command("stop", "3").ok()
    serving.command("start", "3").ok()
    assert leaders(serving)[3] == 0
    assert serving.command("rebalance", "-y").ok().stdout.endswith("moved\n")
    by_broker = leaders(serving)
    assert max(by_broker.values()) - min(by_broker.values()) <= 1, by_broker
    assert "spread evenly already" in serving.command("rebalance").ok().stdout
    serving.command("stop", "3").ok()
    serving.command("start", "3").ok()
    led = leaders(serving)[1]
    assert led > 3, "some of them for broker 3"
    assert f"is drained of {led} partitions" in serving.command("drain", "1").ok().stdout
    assert leaders(serving)[1] == 0
    serving.command("drain", "1", "--undo").ok()


def test_what_a_drain_has_left_is_told(serving: Serving) -> None:
    """It said that the broker was drained, and the broker went on leading."""
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "single", "--replica-assignment", "1,2", bootstrap=bootstrap).ok()
    ran = serving.command("drain", "1")
    assert ran.code == 1
    assert "broker 1 is not drained: 1 partition left" in ran.stderr
    assert "single-0: broker 1 has its only replica; --replicas moves it" in ran.stderr
    assert leaders(serving)[1] == 1
    serving.command("drain", "1", "--undo").ok()
    call_command("topic", "delete", "single", "-y", bootstrap=bootstrap).ok()


def test_a_second_supervisor_is_refused(serving: Serving) -> None:
    ran = run_command("serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", serving.data_dir)
    assert ran.code == 2
    assert "runs already" in ran.stderr


def test_it_ends_cleanly_and_starts_with_its_data_again(serving: Serving) -> None:
    serving.process.send_signal(signal.SIGINT)
    assert serving.process.wait(END_S) == 0, serving.told()
    assert set(serving.states().values()) == {"stopped"}
    status = serving.command("status", "-o", "json")
    assert [row["state"] for row in status.json["brokers"]] == ["offline"] * 3
    again = Serving(serving.folder)
    try:
        bootstrap = again.ready.read_text().strip()
        assert "replicated" in call_command("topic", "list", bootstrap=bootstrap).ok().stdout
        pids = [pid for pid in again.pids().values() if pid is not None]
        again.process.kill()
        again.process.wait()
        wait_for(
            lambda: not any(psutil.pid_exists(pid) for pid in pids),
            "the nodes' end with their supervisor",
            errors=ANY_ERROR,
        )
        status = again.command("status", "-o", "json")
        assert "does not run any more" in status.stderr
        assert [row["state"] for row in status.json["brokers"]] == ["offline"] * 3
    finally:
        again.process.kill()
        again.process.wait()


def test_of_two_begun_together_one_serves_and_the_other_says_who(tmp_path: Path) -> None:
    """On a new directory their nodes belonged to two clusters, and on each both ended."""
    directory = tmp_path / "cluster"
    for turn in ("new", "existing"):
        command = [*COMMAND, "serve", "--brokers", "1", "--listen", "127.0.0.1:0", "--data-dir", str(directory)]
        ready = [tmp_path / f"{turn}-{at}" for at in (0, 1)]
        both = [
            subprocess.Popen(
                [*command, "--ready-file", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            for file in ready
        ]
        try:
            wait_for(lambda ready=ready: any(file.exists() for file in ready), "the one that serves", errors=ANY_ERROR)
            serves = next(at for at in (0, 1) if ready[at].exists())
            _, refusal = both[1 - serves].communicate(timeout=END_S)
            assert both[1 - serves].returncode == 2, refusal
            assert f"runs already in {directory}" in refusal
            assert f"(process {both[serves].pid}" in refusal
            both[serves].send_signal(signal.SIGTERM)
            _, output = both[serves].communicate(timeout=END_S)
            assert (both[serves].returncode, output) == (0, "")
        finally:
            for process in both:
                process.kill()


def test_a_state_that_cannot_be_written_stops_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ClusterOptions(1, port=0, data_dir=str(tmp_path))
    lock = take_directory(str(tmp_path), 0.0)
    supervisor = Supervisor(Members(options, str(tmp_path)), options, lock)
    supervisor._files = disk = FailingFiles()
    disk.errors["write"] = errno.ENOSPC
    supervisor.save()
    supervisor.save()
    output = capsys.readouterr().err
    assert output.count("cluster.json: No space left on device; it is written when that is possible") == 1
    disk.errors.clear()
    now = time.monotonic()
    monkeypatch.setattr("barnabas.supervise.supervisor.time.monotonic", lambda: now + SAVE_AGAIN_S)
    supervisor._save_again()
    assert state.read(str(tmp_path)) == supervisor.state
    supervisor.close()


def test_a_copy_of_a_directory_does_not_reach_the_original(serving: Serving, tmp_path: Path) -> None:
    """`cluster kill` with the copy's directory killed a broker of the original."""
    shutil.copy(Path(serving.data_dir) / state.FILE, tmp_path)
    ran = call_command("cluster", "kill", "1", "--data-dir", str(tmp_path))
    assert ran.code == 1
    assert f"the supervisor of {tmp_path} does not run" in ran.stderr
    assert serving.states()[1] == "running"


@pytest.mark.parametrize("moment", ["importing", "starting"])
def test_ctrl_c_while_it_starts_ends_it_cleanly(tmp_path: Path, moment: str) -> None:
    """A signal between the starts of two nodes left the second running, and the supervisor with it."""
    directory = tmp_path / "cluster"
    command = [*COMMAND, "serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", str(directory)]
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=err, stderr=err, env=clean_environment())
    shown = directory / ("control" if moment == "importing" else state.FILE)
    wait_for(
        lambda: shown.exists() and (moment == "importing" or shown.stat().st_size > 0), "the start", errors=ANY_ERROR
    )
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(END_S) == 0
    finally:
        process.kill()
    assert (tmp_path / "err").read_text() == ""
    if moment == "starting":
        assert [node.name for node in state.read(str(directory)).nodes if node.pid is not None] == []


@pytest.mark.soak
def test_restart_starts_a_broker_again(tmp_path: Path) -> None:
    serving = Serving(tmp_path, "--restart")
    before = serving.pids()[1]
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_for(
        lambda: serving.pids()[1] not in (None, before) and serving.states()[1] == "running",
        "the next process",
        errors=ANY_ERROR,
    )
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(END_S) == 0


@pytest.mark.soak
def test_add_drain_and_rebalance(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    bootstrap = serving.ready.read_text().strip()
    call_command("topic", "create", "moved", "-p", "8", bootstrap=bootstrap).ok()
    assert "broker 4 runs" in serving.command("add").ok().stdout
    assert call_command("cluster", "rebalance", "--dry-run", bootstrap=bootstrap).ok().stdout.count("moved-") > 2
    refused = serving.command("rebalance")
    assert (refused.code, "confirm it with -y" in refused.stderr) == (2, True)
    serving.command("rebalance", "-y").ok()

    def replicas() -> dict[int, int]:
        rows = json.loads(serving.command("status", "-o", "json").stdout)["brokers"]
        return {row["broker"]: row["replicas"] for row in rows}

    assert sorted(replicas().values()) == [6, 6, 6, 6]
    serving.command("drain", "1", "--replicas").ok()
    assert replicas()[1] == 0
    status = serving.command("status", "-o", "json").ok().json
    assert status["brokers"][0]["state"] == "draining"
    serving.command("drain", "1", "--undo").ok()
    assert replicas()[1] == 6
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(END_S) == 0


def test_a_mistake_ends_all_with_one_sentence(tmp_path: Path) -> None:
    ran = run_command(
        *("serve", "--brokers", "2", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "c")),
        *("--set", "2:num.partitions=0"),
    )
    assert ran.code == 2
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert "num.partitions" in ran.stderr
    assert "broker 2" in ran.stderr
