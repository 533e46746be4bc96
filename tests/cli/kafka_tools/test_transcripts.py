"""Kafka's tools under their own names print what Kafka's tools print, against the same broker.

The transcripts are recorded from Kafka's tools (record.py). One test runs Barnabas' commands, another Kafka's own tools
in one JVM, which shows that the transcripts are what these print today.
"""

from __future__ import annotations

import pytest

from tests.cli.kafka_tools import jvm, ours, transcript
from tests.cli.kafka_tools.player import play

NAMES = sorted(path.stem for path in transcript.FOLDER.glob("*.txt"))
SECURED_NAMES = sorted(f"secured/{path.stem}" for path in (transcript.FOLDER / "secured").glob("*.txt"))
"""Against a broker with users, ACLs and tokens, which needs Java."""
QUICK = {"topics", "consumer-groups", "configs"}
"""What Kafka's tools are run for in `make test`; all others in `make soak`."""


@pytest.mark.parametrize("name", NAMES)
def test_barnabas_prints_what_kafkas_tools_print(name, tmp_path):
    assert play(name, ours.run, tmp_path) == (transcript.FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.jvm
@pytest.mark.parametrize("name", SECURED_NAMES)
def test_barnabas_prints_what_kafkas_tools_print_to_a_secured_broker(name, tmp_path):
    assert play(name, ours.run, tmp_path) == (transcript.FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.jvm
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.soak]) for name in (*NAMES, *SECURED_NAMES)],
)
def test_the_transcripts_are_what_kafkas_tools_print(name, tmp_path):
    assert play(name, jvm.run, tmp_path) == (transcript.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
