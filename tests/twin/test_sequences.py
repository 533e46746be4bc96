"""Sequences of the differential tester: made from seeds, compared, shrunk and printed, without a broker."""

from __future__ import annotations

import time

import pytest

from barnabas.wire.batches.records import iter_batches, iter_records
from compat.twin import families
from compat.twin.allowed import KNOWN, RARE, TABLE, allowed_by
from compat.twin.batches import Batch, Batches, decoded_batches
from compat.twin.compare import Comparison
from compat.twin.generate import FAMILIES, actions_of, sequence
from compat.twin.kinds import Mapping
from compat.twin.plain import plain, request_fields, request_of
from compat.twin.scope import scoped
from compat.twin.shrink import script, shrunk
from compat.twin.steps import Saved, Step, at_path, resolved, uses_saved

SEEDS = 150


def compare(kafkas, ours, api="Metadata"):
    """The differences of two answers, as text."""
    comparison = Comparison("s1-", Mapping(), set())
    return [str(difference) for difference in comparison.differences(f"{api} v1", {}, kafkas, ours)]


def test_a_seed_makes_the_same_sequence_whose_requests_can_be_encoded():
    assert families.__doc__
    for seed in range(SEEDS):
        steps = sequence(seed)
        assert repr(steps) == repr(sequence(seed))
        for step in steps:
            values = resolved(step.request, "s1-", {})
            try:
                request = request_of(step.api, step.version, values)
            except KeyError as error:
                pytest.fail(f"seed {seed}: {error} in {step}")
            if step.version in type(request).versions:
                encoded = request.encode(step.version)
                assert type(request).decode(encoded, step.version).encode(step.version) == encoded


def test_a_family_can_be_run_alone():
    for family in FAMILIES:
        assert actions_of(family)
        apis = {step.api for seed in range(5) for step in sequence(seed, [family])}
        assert apis, family


def test_printed_steps_are_the_steps():
    for seed in range(20):
        steps = sequence(seed)
        scope = {
            "Batch": Batch,
            "Batches": Batches,
            "Saved": Saved,
            "Step": Step,
            "nan": float("nan"),
            "inf": float("inf"),
        }
        assert repr(eval(repr(steps), scope)) == repr(steps)
    assert compile(script(steps, "title"), "script.py", "exec")


def test_saved_values_are_each_brokers_own():
    request = {"name": "{s}t1", "id": Saved("id", b""), "epoch": Saved("epoch", 0, 1), "records": Batch()}
    values = resolved(request, "s7-", {"id": b"1", "epoch": 4})
    assert (values["name"], values["id"], values["epoch"]) == ("s7-t1", b"1", 5)
    assert resolved(Saved("absent", 3), "s7-", {}) == 3
    assert uses_saved(request)
    assert not uses_saved({"a": [1, Batch()]})
    assert uses_saved({"a": [Batches((Batch(producer_id=Saved("pid")),))]})
    assert at_path({"a": [{"b": 1}]}, ("a", 0, "b")) == 1
    assert at_path({"a": []}, ("a", 0, "b")) is None


def test_ids_are_mapped_in_both_directions():
    mapping = Mapping()
    assert mapping.agree("producer id", 5, 7)
    assert mapping.agree("producer id", 5, 7)
    assert not mapping.agree("producer id", 5, 8)
    assert not mapping.agree("producer id", 6, 7)
    assert mapping.agree("topic id", 5, 8)
    assert mapping.agree("producer id", -1, -1)
    assert not mapping.agree("producer id", -1, 7)


def test_answers_are_compared_field_by_field():
    now = int(time.time() * 1000)
    code = "Metadata v1 topics.error_code"
    topic = {"name": "s1-a", "topic_id": b"k" * 16, "error_code": 0}
    cases = [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["Metadata v1 a: Kafka 1, Barnabas 2"]),
        ({"a": 1}, {"a": True}, ["Metadata v1 a: Kafka 1, Barnabas True"]),
        ({"a": 1}, {}, ["Metadata v1 a: Kafka 1, Barnabas '(no such field)'"]),
        ({"topics": [topic]}, {"topics": [{**topic, "topic_id": b"o" * 16}]}, []),
        ({"topics": [topic]}, {"topics": [topic | {"error_code": 3}]}, [f"{code}: Kafka 0, Barnabas 3"]),
        ({"max_timestamp": now}, {"max_timestamp": now - 5}, []),
        ({"max_timestamp": 5}, {"max_timestamp": now}, [f"Metadata v1 max_timestamp: Kafka 5, Barnabas {now}"]),
        ({"port": 1}, {"port": 2}, []),
        ({"port": 1}, {"port": 0}, ["Metadata v1 port: Kafka 1, Barnabas 0"]),
        ({"connection": "closed"}, {"a": 1}, ["Metadata v1 (answer): Kafka 'closed', Barnabas {'a': 1}"]),
        ({"names": ["a", "b"]}, {"names": ["a"]}, ["Metadata v1 names.(count): Kafka ['a', 'b'], Barnabas ['a']"]),
    ]  # fmt: skip
    for kafkas, ours, expected in cases:
        assert compare(kafkas, ours) == expected


def test_elements_of_lists_are_compared_by_their_names():
    def topics(*pairs):
        return {"topics": [{"name": name, "error_code": code} for name, code in pairs]}

    assert compare(topics(("a", 0), ("b", 3)), topics(("b", 3), ("a", 0))) == []
    assert compare(topics(("a", 0), ("b", 3)), topics(("b", 3), ("a", 1))) == [
        "Metadata v1 topics.error_code: Kafka 0, Barnabas 1"
    ]
    (lost,) = compare(topics(("a", 0), ("b", 3)), topics(("b", 3)))
    assert lost == "Metadata v1 topics.(elements): Kafka [{'name': 'a', 'error_code': 0}], Barnabas []"


def test_an_exception_of_kafka_is_one_difference_that_is_allowed_if_we_refuse():
    assert compare({"error_code": -1, "text": None}, {"error_code": 42, "text": "wrong"}) == []
    assert compare({"error_code": -1, "text": None}, {"error_code": 0, "text": "wrong"}) == [
        "Metadata v1 error_code: Kafka -1, Barnabas 0"
    ]


def test_rows_of_the_table_have_reasons_and_conditions_hold():
    assert all(row.reason for row in (*TABLE, *RARE, *KNOWN))
    assert allowed_by("Produce", "responses.error_message", {}, None, "text") is not None
    assert allowed_by("Produce", "responses.error_message", {}, "text", None) is None
    assert allowed_by("Metadata", "topics.name", {}, "a", "b") is None


def test_a_sequence_sees_only_its_own_names():
    listed = {"topics": [{"name": "s1-a"}, {"name": "s12-a"}, {"name": "__consumer_offsets"}, {"name": ""}], "n": 1}
    assert scoped(listed, "s1-") == {"topics": [{"name": "s1-a"}, {"name": ""}], "n": 1}


def test_batches_are_right_unless_something_is_wrong():
    data = Batch(values=(b"a", None), keys=(b"k",), headers=2, codec=4, first_ms=5).encoded(lambda value: value)
    (batch,) = iter_batches(data)
    records = list(iter_records(batch))
    assert [(record.key, record.value, record.timestamp) for record in records] == [(b"k", b"a", 5), (None, None, 6)]
    assert batch.crc_is_valid()
    wrong = Batch(crc=1).encoded(lambda value: value)
    assert [part["crc"] for part in decoded_batches(data + wrong)] == [True, False]
    assert decoded_batches(data[:30])[0]["bytes"] == data[:30]
    assert "incomplete_at" in decoded_batches(data[:-1])[0]
    old = Batch(magic=1, values=(b"a",)).encoded(lambda value: value)
    assert old[16] == 1


def test_a_difference_is_shrunk_to_the_steps_that_show_it():
    steps = [Step("Metadata", 1, {"number": number}) for number in range(20)]
    tried = []

    def shows(few):
        tried.append(len(few))
        numbers = [step.request["number"] for step in few]
        return 3 in numbers and 17 in numbers

    assert [step.request["number"] for step in shrunk(steps, shows)] == [3, 17]
    assert len(tried) <= 60
    assert shrunk(steps, lambda few: False) == steps


def test_messages_become_plain_values_with_the_fields_of_their_version():
    request = request_of("Metadata", 1, {"topics": [{"name": "a", "topic_id": b"x" * 16}]})
    assert plain(request, 1) == {"topics": [{"name": "a"}]}
    assert request_fields("Metadata", 4) == ["topics.name", "topics", "allow_auto_topic_creation"]
    with pytest.raises(KeyError):
        request_of("Metadata", 1, {"topic": []})
