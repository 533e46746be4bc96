"""Kafka's tools under their own names print what Kafka's tools print, against the same broker.

The transcripts are recorded from Kafka's tools (record.py). Some tests run Barnabas' commands, others Kafka's own
tools, which shows that the transcripts are what these print today.
"""

from __future__ import annotations

import pytest

from tests.cli.kafka_tools import ours
from tests.cli.kafka_tools.player import play, secured_kafka
from tests.support import transcript
from tests.support.jvm import kafka_scripts as jvm

NAMES = sorted(path.stem for path in transcript.FOLDER.glob("*.txt"))
SECURED_NAMES = sorted(f"secured/{path.stem}" for path in (transcript.FOLDER / "secured").glob("*.txt"))
"""Against a broker with users, ACLs and tokens, which needs Java."""
QUICK = {"topics", "consumer-groups", "configs"}
"""What Kafka's tools are run for in `make test`; all others are soak."""


def recorded(name):
    return (transcript.FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def kafka_for_ours(tmp_path_factory):
    """One node of Apache Kafka for all that Barnabas' commands are compared in."""
    yield from secured_kafka(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def kafka_for_tools(tmp_path_factory):
    """Another one, which is new to the same commands of Kafka's tools."""
    yield from secured_kafka(tmp_path_factory.mktemp("kafkas"))


@pytest.mark.parametrize("name", NAMES)
def test_barnabas_prints_what_kafkas_tools_print(name, tmp_path):
    assert play(name, ours.run, tmp_path) == recorded(name)


@pytest.mark.jvm
@pytest.mark.parametrize("name", SECURED_NAMES)
def test_barnabas_prints_what_kafkas_tools_print_to_a_secured_broker(name, tmp_path, kafka_for_ours):
    assert play(name, ours.run, tmp_path, kafka_for_ours) == recorded(name)


@pytest.mark.jvm
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.soak]) for name in NAMES]
)
def test_the_transcripts_are_what_kafkas_tools_print(name, tmp_path):
    assert play(name, jvm.run, tmp_path) == recorded(name)


@pytest.mark.soak
@pytest.mark.jvm
@pytest.mark.parametrize("name", SECURED_NAMES)
def test_the_transcripts_are_what_kafkas_tools_print_to_a_secured_broker(name, tmp_path, kafka_for_tools):
    assert play(name, jvm.run, tmp_path, kafka_for_tools) == recorded(name)
