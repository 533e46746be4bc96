"""Kafka's own kafka-dump-log reads every kind of file that a log writes, and reports no error."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from barnabas.storage.log import Log
from tests.support.jvm.kafka_tools import run_tool
from tests.support.logs.log_driver import append, append_marker, batch_of, kill, open_log, small_config

KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
COMPLAINT = re.compile(r"mismatch|invalid|exception|corrupt|isvalid: false|out of order|fatal|error", re.IGNORECASE)

pytestmark = pytest.mark.jvm


def varied_log(directory: Path) -> Log:
    """Several segments with all codecs, unordered timestamps, epochs, producers, committed and aborted transactions."""
    choice = random.Random(1)
    log = open_log(directory, small_config(segment_bytes=4000, index_interval_bytes=300))
    sequences = {1: 0, 2: 0}
    for at in range(150):
        producer_id = choice.choice([-1, 1, 2])
        count = choice.randint(1, 4)
        append(
            log,
            batch_of(
                [b"x" * choice.randint(0, 80) for _ in range(count)],
                timestamps=[choice.randint(1000, 5000) for _ in range(count)],
                codec=choice.randint(0, 4),
                producer=(producer_id, 0, sequences[producer_id]) if producer_id > 0 else (-1, -1, -1),
                transactional=producer_id == 2,
            ),
            leader_epoch=at // 40,
        )
        if producer_id > 0:
            sequences[producer_id] += count
        if producer_id == 2 and choice.random() < 0.4:
            append_marker(log, commit=choice.random() < 0.5, producer_id=2)
        if at == 100:
            log = kill(log)
    return log


def dump(files: list[Path]) -> tuple[str, list[str]]:
    """The output of kafka-dump-log about files, and its stderr."""
    done = run_tool("DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, files)))
    assert done.code == 0, done.errors
    return done.out, done.errors.splitlines()


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "killed"])
def test_kafkas_tool_reads_every_file_without_an_error(tmp_path: Path, clean: bool) -> None:
    log = varied_log(tmp_path)
    if clean:
        log.close()
    files = sorted(path for path in Path(log.directory).iterdir() if path.suffix in KINDS)
    assert {path.suffix for path in files} == set(KINDS)
    printed, complaints = dump(files)
    assert not COMPLAINT.search(printed.replace("isvalid: true", ""))
    # The tool itself starts every file at offset -1, so each segment that does not start at 0 gets this pair of lines.
    known = {
        line
        for segment in list(log.segments)[1:]
        for line in (f"Non-consecutive offsets in {segment.stem}.log", f"  -1 is followed by {segment.base_offset}")
    }
    assert set(complaints) <= known
    assert printed.count("isvalid: true") == sum(1 for segment in log.segments for _ in segment.scan(0))
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)] == list(
        range(log.log_end_offset)
    )


def test_kafkas_tool_reports_a_wrong_index(tmp_path: Path) -> None:
    """The check above can fail."""
    log = varied_log(tmp_path)
    log.close()
    index = Path(log.segments[0].stem + ".index")
    entries = bytearray(index.read_bytes())
    entries[3] += 1
    index.write_bytes(entries)
    _, complaints = dump([index])
    assert any("Mismatches" in line for line in complaints)
