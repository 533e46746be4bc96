"""The log report: its table equals the counts of the log file, also if the broker is killed -9 during the run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.jvm.jars import JarsUnavailableError, fetch

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "compat" / "spark" / "log_report.py"
KINDS = ("install", "configure", "status", "trigproc", "remove")
LINES = 400_000

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.jvm, pytest.mark.timeout(400)]


@pytest.fixture(scope="module", autouse=True)
def _connector():
    try:
        jars = fetch(ROOT / "barnabas" / "spark" / "session" / "pom.xml")
    except JarsUnavailableError as why:
        pytest.skip(str(why))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARNABAS_SPARK_JARS", str(jars))
        yield


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A package manager's log of half a year, in which some lines have no timestamp."""
    path = tmp_path_factory.mktemp("log") / "dpkg.log"
    with path.open("w") as file:
        for n in range(LINES):
            second = n * 37
            day, hour = second // 86_400, second // 3600 % 24
            stamp = f"2026-{1 + day // 28:02}-{1 + day % 28:02} {hour:02}:{second // 60 % 60:02}:{second % 60:02}"
            file.write(
                f"{stamp} {KINDS[n * n % len(KINDS)]} package-{n}:amd64 1.{n}\n" if n % 9973 else "no stamp here\n"
            )
    return path


def _command(log, server, topic, work_dir):
    return [
        sys.executable,
        str(SCRIPT),
        str(log),
        "--bootstrap",
        server.bootstrap,
        "--topic",
        topic,
        "--work-dir",
        str(work_dir),
    ]


def _end_offset(server, topic):
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "watch"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1]
    except KafkaException:
        return 0
    finally:
        consumer.close()


def _run_and_kill_the_broker(log, server, topic, work_dir):
    """Run the report, and kill the broker when a part of the lines is produced."""
    process = subprocess.Popen(
        _command(log, server, topic, work_dir), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while _end_offset(server, topic) < LINES // 10:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
    server.kill9()
    server.restart()
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, output + errors
    return output


def _table(output):
    return output[output.index("hour ") : output.index("equal to the counts")]


def test_the_table_equals_the_files_counts_also_after_a_kill_9_of_the_broker(log, start_broker, topic, tmp_path):
    server = start_broker()
    undisturbed = subprocess.run(
        _command(log, server, topic, tmp_path / "a"), capture_output=True, text=True, check=False, timeout=200
    )
    assert undisturbed.returncode == 0, undisturbed.stdout + undisturbed.stderr
    assert f"Spark counted {LINES} lines" in undisturbed.stdout
    crashed = _run_and_kill_the_broker(log, server, f"{topic}-killed", tmp_path / "b")
    assert _table(crashed) == _table(undisturbed.stdout)


def test_a_missing_file_is_one_sentence(tmp_path):
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "none.log")], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "there is no file" in run.stderr
    assert "Traceback" not in run.stderr
