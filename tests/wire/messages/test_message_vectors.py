"""Every message and version of Kafka 4.4.0 as encoded by Kafka's classes, decoded and encoded by both codecs."""

from __future__ import annotations

import json

from barnabas.wire.codec.vectors import check_line
from barnabas.wire.registry import all_messages
from tests.support.requests.recorded import vectors


def test_all_vectors_decode_and_encode_with_both_codecs() -> None:
    assert len(vectors()) == 2229
    assert [problem for vector in vectors() if (problem := check_line(vector.line))] == []


def test_vectors_cover_every_version_of_every_message() -> None:
    covered = {(vector.message_class.__name__, vector.version) for vector in vectors()}
    declared = {(name, version) for name, message in all_messages().items() for version in message.versions}
    assert declared - covered == {("TransactionLogValue", 0)}  # Kafka no longer writes it
    assert covered <= declared


def test_both_codecs_give_equal_objects() -> None:
    for vector in vectors():
        compiled = vector.message_class.decode(vector.data, vector.version)
        interpreted = vector.message_class.at(vector.version).parse(vector.data)
        assert compiled == interpreted
        assert repr(compiled) == repr(interpreted)


def test_codec_parses_at_a_position_and_returns_the_end() -> None:
    for vector in vectors()[::7]:
        padded = memoryview(b"before" + vector.data + b"after")
        message, end = vector.message_class.codec(vector.version).parse(padded, 6)
        assert end == 6 + len(vector.data)
        assert message == vector.message_class.decode(vector.data, vector.version)


def test_check_line_reports_the_first_problem() -> None:
    row = json.loads(next(vector.line for vector in vectors() if vector.line.startswith('{"message":"Heartbeat')))

    def problem(**changes: object) -> str:
        return check_line(json.dumps({**row, **changes})) or ""

    assert problem() == ""
    assert "does not decode (compiled)" in problem(hex=row["hex"][:-2])
    assert "does not decode (compiled)" in problem(hex=row["hex"] + "00")
    assert "decodes (compiled) to" in problem(value={**row["value"], "groupId": "another"})
    assert "instead of" in problem(value={**row["value"], "excess": 1})
    longer_than_needed = {"message": "TopicRecord", "version": 0, "value": {"name": "ab", "topicId": "A" * 22}}
    other_bytes = check_line(json.dumps({**longer_than_needed, "hex": "8300" + b"ab".hex() + "00" * 17}))
    assert "encodes (compiled) to other bytes, at byte 0" in (other_bytes or "")
    assert "no such message" in problem(message="NoSuchRequestData")
    assert "no such version" in problem(version=99)
    assert "not a vector" in problem(hex="xx")
    assert "not a vector" in (check_line("nothing") or "")
