"""The checker finds each anomaly that is planted in a history, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from compat.checker.__main__ import check
from compat.checker.history import HistoryError, Writer, events_of, read
from compat.exactly_once.confluent_client import known_offset
from tests.support.cases import for_each

ROOT = Path(__file__).resolve().parent.parent.parent
COMMITTED = {"isolation": "read_committed"}


def kinds(*lines: tuple[str, str, dict[str, Any]]) -> list[str]:
    """The kinds of findings in a history of (process, type, fields), one moment after the other."""
    events = [
        {"at": float(moment), "process": process, "type": kind, **fields}
        for moment, (process, kind, fields) in enumerate(lines)
    ]
    text = "".join(json.dumps(event) + "\n" for event in events)
    return [finding.kind for finding in check(events_of("history", text))]


def send(value, partition=0, process="w", topic="t", **more):
    return process, "send", {"topic": topic, "partition": partition, "value": value, **more}


def sent(value, offset, partition=0, process="w", topic="t"):
    return process, "sent", {"topic": topic, "partition": partition, "value": value, "offset": offset}


def written(*values, topic="t"):
    """Sends and their responses, at offsets from 0 on."""
    both = [(send(value, topic=topic), sent(value, offset, topic=topic)) for offset, value in enumerate(values)]
    return [line for pair in both for line in pair]


def txn(kind, name="x", process="w"):
    return process, kind, {"txn": name}


def poll(*records, process="r", topic="t", **more):
    """A poll of (offset, value) of partition 0."""
    return process, "poll", {"records": [[topic, 0, offset, value] for offset, value in records], **more}


def end(offset, topic="t", **more):
    return "r", "end", {"topic": topic, "partition": 0, "offset": offset, **more}


def offsets(kind, offset, process="c", **more):
    return process, kind, {"group": "g", "offsets": [["t", 0, offset]], **more}


TWO_READ = [*written("a", "b"), poll((0, "a"), (1, "b")), end(2)]


class TestRecords:
    def test_records_written_and_read_give_no_findings(self):
        assert kinds(*TWO_READ) == []

    def test_an_acknowledged_record_that_was_skipped_is_lost(self):
        assert kinds(*written("a", "b"), poll((1, "b"))) == ["lost-write"]

    def test_an_acknowledged_record_beyond_the_last_that_was_read_may_still_be_read(self):
        assert kinds(*written("a", "b"), poll((0, "a"))) == []

    def test_an_acknowledged_record_that_is_missing_at_the_end_is_lost(self):
        assert kinds(*written("a", "b"), poll((0, "a")), end(1)) == ["lost-write"]

    def test_a_record_that_was_acknowledged_without_an_offset_must_be_there(self):
        known = [send("a"), sent("a", -1001), send("b"), sent("b", -1001)]
        assert kinds(*known, poll((0, "a"), (1, "b")), end(2)) == []
        assert kinds(*known, poll((0, "b")), end(1)) == ["lost-write"]

    def test_a_record_without_a_response_may_be_in_the_log_or_not(self):
        assert kinds(send("a"), end(0)) == []
        assert kinds(send("a"), poll((0, "a")), end(1)) == []

    def test_a_record_at_two_offsets_is_a_duplicate(self):
        assert kinds(*written("a"), poll((0, "a"), (1, "a"))) == ["duplicate"]

    def test_a_record_that_is_not_read_at_its_acknowledged_offset_is_a_duplicate(self):
        assert kinds(send("a"), sent("a", 3), poll((4, "a"))) == ["duplicate"]

    def test_two_values_at_one_offset_are_inconsistent(self):
        anomalies = kinds(poll((0, "a"), process="one"), poll((0, "b"), process="two"))
        assert anomalies == ["inconsistent-offsets"]

    def test_a_response_with_the_offset_of_another_record_is_inconsistent(self):
        anomalies = kinds(send("a"), sent("a", 0), send("b"), sent("b", 0))
        assert anomalies == ["inconsistent-offsets", "nonmonotonic-send"]

    def test_a_failed_send_that_is_read_is_an_aborted_read(self):
        failed = ("w", "failed", {"topic": "t", "partition": 0, "value": "a"})
        assert kinds(send("a"), failed, poll((0, "a"), **COMMITTED)) == ["aborted-read"]


class TestTransactions:
    def test_a_committed_transaction_is_read_completely(self):
        lines = [txn("begin"), send("a", txn="x"), send("b", txn="x"), txn("committing"), txn("committed")]
        assert kinds(*lines, poll((0, "a"), (1, "b"), **COMMITTED), end(3, **COMMITTED)) == []

    def test_a_value_of_an_aborted_transaction_is_an_aborted_read(self):
        lines = [txn("begin"), send("a", txn="x"), txn("aborted"), poll((0, "a"), **COMMITTED)]
        assert kinds(*lines) == ["aborted-read"]

    def test_a_read_uncommitted_reader_may_read_aborted_values(self):
        assert kinds(txn("begin"), send("a", txn="x"), txn("aborted"), poll((0, "a"))) == []

    def test_a_value_of_a_transaction_without_a_commit_request_is_an_aborted_read(self):
        assert kinds(txn("begin"), send("a", txn="x"), poll((0, "a"), **COMMITTED)) == ["aborted-read"]

    def test_a_value_that_is_read_before_the_commit_request_is_precommitted(self):
        lines = [txn("begin"), send("a", txn="x"), poll((0, "a"), **COMMITTED), txn("committing"), txn("committed")]
        assert kinds(*lines) == ["precommitted-read"]

    def test_a_value_may_be_read_before_the_commit_response(self):
        lines = [txn("begin"), send("a", txn="x"), txn("committing"), poll((0, "a"), **COMMITTED), txn("committed")]
        assert kinds(*lines) == []

    def test_a_committed_transaction_that_is_missing_at_the_end_is_lost(self):
        lines = [txn("begin"), send("a", txn="x"), txn("committing"), txn("committed"), end(0, **COMMITTED)]
        assert kinds(*lines) == ["lost-write"]

    def test_only_read_committed_readers_prove_that_a_transaction_is_committed(self):
        lines = [txn("begin"), send("a", txn="x"), txn("committing"), txn("committed"), poll((0, "a"))]
        assert kinds(*lines, end(0, **COMMITTED)) == ["lost-write"]

    def test_a_transaction_without_a_response_may_be_committed_or_not(self):
        lines = [txn("begin"), send("a", txn="x"), send("b", txn="x"), txn("committing")]
        assert kinds(*lines, end(0, **COMMITTED)) == []
        assert kinds(*lines, poll((0, "a"), (1, "b"), **COMMITTED), end(2, **COMMITTED)) == []

    def test_a_value_that_is_sent_again_after_an_abort_is_read_once(self):
        first = [txn("begin"), send("a", txn="x"), sent("a", 0), txn("aborted")]
        second = [txn("begin", "y"), send("a", txn="y"), sent("a", 2), txn("committing", "y"), txn("committed", "y")]
        assert kinds(*first, *second, poll((2, "a"), **COMMITTED), end(4, **COMMITTED)) == []
        both = poll((0, "a"), (2, "a"), **COMMITTED)
        assert kinds(*first, *second, both, end(4, **COMMITTED)) == ["duplicate", "aborted-read"]
        assert kinds(*first, *second, poll((0, "a"), **COMMITTED)) == ["duplicate", "aborted-read"]
        assert kinds(*first, *second, end(4, **COMMITTED)) == ["lost-write"]

    def test_a_value_that_is_sent_again_after_an_unknown_end_may_be_of_either(self):
        first = [txn("begin"), send("a", txn="x"), sent("a", 0), send("b", txn="x"), sent("b", 1), txn("committing")]
        second = [txn("begin", "y"), send("a", txn="y"), sent("a", 3), txn("committing", "y"), txn("committed", "y")]
        assert kinds(*first, *second, poll((3, "a"), **COMMITTED), end(5, **COMMITTED)) == []
        both = poll((0, "a"), (1, "b"), (3, "a"), **COMMITTED)
        assert kinds(*first, *second, both, end(5, **COMMITTED)) == ["duplicate"]

    def test_a_partly_visible_transaction_is_torn(self):
        lines = [txn("begin"), send("a", txn="x"), send("b", txn="x"), txn("committing")]
        lines.insert(2, sent("a", 0))
        assert kinds(*lines, poll((0, "a"), **COMMITTED), end(2, **COMMITTED)) == ["torn-transaction"]


class TestOrder:
    def test_a_poll_that_goes_back_within_itself(self):
        assert kinds(*written("a", "b"), poll((1, "b"), (0, "a"))) == ["int-nonmonotonic-poll"]

    def test_a_poll_that_goes_back_behind_the_one_before(self):
        assert kinds(*written("a", "b"), poll((0, "a"), (1, "b")), poll((1, "b"))) == ["nonmonotonic-poll"]

    def test_a_poll_that_skips_within_itself(self):
        other = poll((1, "b"), process="other")
        assert kinds(*written("a", "b", "c"), other, poll((0, "a"), (2, "c"))) == ["int-poll-skip"]

    def test_a_poll_that_skips_after_the_one_before(self):
        other = poll((1, "b"), process="other")
        assert kinds(*written("a", "b", "c"), other, poll((0, "a")), poll((2, "c"))) == ["poll-skip"]

    def test_invisible_offsets_may_be_skipped(self):
        aborted = [txn("begin"), send("b", txn="x"), sent("b", 1), txn("aborted")]
        lines = [send("a"), sent("a", 0), *aborted, send("c"), sent("c", 2)]
        assert kinds(*lines, poll((0, "a"), (2, "c"), **COMMITTED)) == []
        assert kinds(*lines, poll((1, "b"), process="other"), poll((0, "a"), (2, "c"))) == ["int-poll-skip"]

    @pytest.mark.parametrize(
        "reset",
        [
            ("r", "assigned", {"partitions": [["t", 0]]}),
            ("r", "revoked", {"partitions": [["t", 0]]}),
            ("r", "seek", {"topic": "t", "partition": 0, "offset": 0}),
        ],
    )
    def test_an_assignment_or_a_seek_resets_the_position(self, reset):
        assert kinds(*written("a", "b"), poll((0, "a"), (1, "b")), reset, poll((0, "a"))) == []

    def test_an_assignment_of_another_partition_does_not_reset_the_position(self):
        reset = ("r", "assigned", {"partitions": [["t", 1]]})
        assert kinds(*written("a"), poll((0, "a")), reset, poll((0, "a"))) == ["nonmonotonic-poll"]

    def test_sends_that_overtake_one_another(self):
        lines = [send("a"), send("b"), sent("b", 0), sent("a", 1)]
        assert kinds(*lines) == ["nonmonotonic-send"]

    def test_sends_that_overtake_one_another_within_a_transaction(self):
        lines = [txn("begin"), send("a", txn="x"), send("b", txn="x"), sent("b", 0), sent("a", 1), txn("aborted")]
        assert kinds(*lines) == ["int-nonmonotonic-send"]

    def test_sends_of_two_processes_may_overtake_one_another(self):
        assert kinds(send("a"), send("b", process="v"), sent("b", 0, process="v"), sent("a", 1)) == []


class TestCommittedOffsets:
    def test_the_last_commit_is_found(self):
        lines = [offsets("committing_offsets", 5), offsets("committed_offsets", 5)]
        assert kinds(*lines, offsets("fetched_offsets", 5, since=2.0)) == []

    def test_an_older_commit_is_a_regression(self):
        lines = [offsets(kind, offset) for offset in (5, 9) for kind in ("committing_offsets", "committed_offsets")]
        assert kinds(*lines, offsets("fetched_offsets", 5, since=4.0)) == ["committed-offset-regression"]

    def test_no_offset_at_all_is_a_regression(self):
        lines = [offsets("committing_offsets", 5), offsets("committed_offsets", 5)]
        assert kinds(*lines, offsets("fetched_offsets", -1, since=2.0)) == ["committed-offset-regression"]

    def test_a_commit_without_a_response_may_be_found_or_not(self):
        lines = [offsets("committing_offsets", 5), offsets("committed_offsets", 5), offsets("committing_offsets", 9)]
        assert kinds(*lines, offsets("fetched_offsets", 5, since=3.0)) == []
        assert kinds(*lines, offsets("fetched_offsets", 9, since=3.0)) == []

    def test_a_commit_without_an_answer_may_take_effect_after_later_ones(self):
        lines = [offsets("committing_offsets", 5), offsets("committing_offsets", 9), offsets("committed_offsets", 9)]
        assert kinds(*lines, offsets("fetched_offsets", 5, since=3.0)) == []
        assert kinds(*lines, offsets("fetched_offsets", 5, since=3.0), offsets("fetched_offsets", 9, since=4.0)) == []
        assert kinds(*lines, offsets("fetched_offsets", -1, since=3.0)) == ["committed-offset-regression"]
        assert kinds(offsets("committed_offsets", 9), offsets("fetched_offsets", 5, since=1.0), lines[0]) == [
            "committed-offset-regression"
        ]

    def test_a_commit_that_its_client_has_repeated_may_take_effect_later_too(self):
        five = [offsets("committing_offsets", 5), ("c", "note", {"text": "again"}), offsets("committed_offsets", 5)]
        nine = [offsets("committing_offsets", 9), offsets("committed_offsets", 9)]
        assert kinds(*five, *nine, offsets("fetched_offsets", 5, since=5.0)) == []
        of_another = [five[0], ("d", "note", {"text": "again"}), five[2]]
        assert kinds(*of_another, *nine, offsets("fetched_offsets", 5, since=5.0)) == ["committed-offset-regression"]

    def test_a_commit_that_was_answered_after_the_request_may_be_found_or_not(self):
        lines = [offsets("committing_offsets", 5), offsets("committed_offsets", 5)]
        assert kinds(*lines, offsets("fetched_offsets", -1, since=0.5)) == []

    def test_an_offset_that_nobody_committed_is_invented(self):
        assert kinds(offsets("fetched_offsets", 5, since=0.0)) == ["committed-offset-invented"]

    def test_offsets_of_an_aborted_transaction_are_invented(self):
        lines = [txn("begin"), offsets("committing_offsets", 5, txn="x"), txn("aborted")]
        assert kinds(*lines, offsets("fetched_offsets", 5, since=3.0)) == ["committed-offset-invented"]

    def test_offsets_of_a_committed_transaction_hold(self):
        events = [txn("begin"), offsets("committing_offsets", 5, txn="x"), offsets("committed_offsets", 5, txn="x")]
        ended = [txn("committing"), txn("committed")]
        assert kinds(*events, *ended, offsets("fetched_offsets", 5, since=5.0)) == []
        assert kinds(*events, *ended, offsets("fetched_offsets", -1, since=5.0)) == ["committed-offset-regression"]
        assert kinds(*events, offsets("fetched_offsets", -1, since=3.0), *ended) == []


class TestCopies:
    source = (*written("a", "b"), poll((0, "a"), (1, "b")), end(2))
    declared = ("driver", "copy", {"source": "t", "target": "u"})

    def copied(self, *records):
        target = [poll(*records, topic="u", process="u", **COMMITTED), end(9, topic="u", **COMMITTED)]
        return kinds(self.declared, *self.source, *target)

    def test_an_exact_copy_in_another_order(self):
        assert self.copied((0, "b"), (1, "a")) == []

    def test_a_value_that_is_missing(self):
        assert self.copied((0, "b")) == ["copy-missing"]

    def test_a_value_that_was_copied_twice(self):
        assert self.copied((0, "a"), (1, "b"), (2, "a")) == ["duplicate", "copy-repeated"]

    def test_a_value_that_is_not_from_the_source(self):
        assert self.copied((0, "a"), (1, "b"), (2, "c")) == ["copy-invented"]

    def test_a_copy_that_was_not_read_to_the_end_is_unread(self):
        unread = poll((0, "a"), (1, "b"), topic="u", process="u", **COMMITTED)
        assert kinds(self.declared, *self.source, unread) == ["copy-unread"]


class TestShareGroups:
    settings = ("driver", "share_group", {"group": "s", "topic": "t", "delivery_limit": 2, "lock_s": 30.0})
    drained = ("driver", "drained", {"group": "s", "topic": "t"})

    def acquired(self, count, process="m", offset=0):
        return process, "acquired", {"group": "s", "records": [["t", 0, offset, f"v{offset}", count]]}

    def acked(self, kind, process="m", is_answered=True):
        rows = {"group": "s", "records": [["t", 0, 0, kind]]}
        return [(process, "acknowledging", rows), *([(process, "acknowledged", rows)] if is_answered else [])]

    def test_a_record_that_is_accepted_once(self):
        assert kinds(self.settings, self.acquired(1), *self.acked("accept"), self.drained) == []

    @pytest.mark.parametrize("kind", ["accept", "reject"])
    def test_a_record_that_is_delivered_after_its_end(self, kind):
        anomalies = kinds(self.settings, self.acquired(1), *self.acked(kind), self.acquired(2, "n"))
        assert anomalies == ["share-redelivered"]

    def test_a_released_record_is_delivered_with_the_next_count(self):
        again = [self.acquired(2, "n"), *self.acked("accept", "n")]
        assert kinds(self.settings, self.acquired(1), *self.acked("release"), *again, self.drained) == []

    def test_a_record_that_two_members_hold(self):
        assert kinds(self.settings, self.acquired(1), self.acquired(2, "n")) == ["share-held-by-two"]

    def test_a_record_is_delivered_to_another_member_after_its_lock(self):
        moments = [self.settings, self.acquired(1), *[("driver", "note", {"text": ""})] * 30, self.acquired(2, "n")]
        assert kinds(*moments) == []

    def test_a_renewed_lock_still_holds(self):
        pause = [("driver", "note", {"text": ""})] * 28
        assert kinds(self.settings, self.acquired(1), *pause, *self.acked("renew"), self.acquired(2, "n")) == [
            "share-held-by-two"
        ]

    @pytest.mark.parametrize("left", [("m", "closed", {}), ("driver", "killed", {"victim": "m"})])
    def test_records_of_a_member_that_has_left_are_available(self, left):
        assert kinds(self.settings, self.acquired(1), left, self.acquired(2, "n")) == []

    def test_a_count_that_does_not_rise(self):
        anomalies = kinds(self.settings, self.acquired(1), *self.acked("release"), self.acquired(1))
        assert anomalies == ["share-delivery-count"]

    def test_a_count_beyond_the_limit(self):
        lines = [line for count in (1, 2, 3) for line in (self.acquired(count), *self.acked("release"))]
        assert kinds(self.settings, *lines) == ["share-delivery-count"]

    def test_a_restarted_broker_may_have_lost_locks_and_counts(self):
        assert kinds(self.settings, self.acquired(1), ("driver", "restarted", {}), self.acquired(1, "n")) == []

    def test_a_restarted_broker_must_not_have_lost_acknowledgements(self):
        lines = [self.settings, self.acquired(1), *self.acked("accept"), ("driver", "restarted", {})]
        pause = [("driver", "note", {"text": ""})] * 30
        assert kinds(*lines, *pause, self.acquired(1, "n")) == ["share-redelivered"]
        assert kinds(*lines, self.acquired(1, "n"), *self.acked("accept", "n")) == ["share-ended-twice"]

    def test_records_fetched_before_a_restart_may_be_delivered_after_it(self):
        lines = [self.settings, self.acquired(1), *self.acked("accept"), ("driver", "restarted", {})]
        assert kinds(*lines, self.acquired(1, "n"), *self.acked("accept", "n", is_answered=False)) == []

    def test_a_record_that_is_never_finished(self):
        assert kinds(self.settings, self.acquired(1), *self.acked("release"), self.drained) == ["share-unfinished"]

    def test_a_record_that_was_never_delivered(self):
        assert kinds(self.settings, *written("v0"), self.drained) == ["share-unfinished"]

    def test_a_record_at_the_delivery_limit_is_finished(self):
        lines = [line for count in (1, 2) for line in (self.acquired(count), *self.acked("release"))]
        assert kinds(self.settings, *lines, self.drained) == []

    def test_an_accept_without_a_response_may_have_succeeded(self):
        lines = [self.settings, self.acquired(1), *self.acked("accept", is_answered=False)]
        assert kinds(*lines, self.drained) == []
        assert kinds(*lines, ("driver", "killed", {"victim": "m"}), self.acquired(2, "n"), self.drained) == []


class TestFiles:
    def run(self, *arguments):
        command = [sys.executable, "-m", "compat.checker", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)

    def write(self, folder, *lines):
        for name in dict.fromkeys(process for process, _, _ in lines):
            writer = Writer(folder / f"{name}.jsonl", name)
            for process, kind, fields in lines:
                if process == name:
                    writer.write(kind, **fields)
            writer.close()

    def test_histories_without_findings_exit_with_0(self, tmp_path):
        self.write(tmp_path, *TWO_READ)
        done = self.run(tmp_path)
        assert (done.returncode, done.stdout) == (0, "no findings in 6 events of 2 processes\n")

    def test_a_finding_is_one_line_and_exits_with_1(self, tmp_path):
        self.write(tmp_path, *written("a"), poll((0, "a"), (3, "a")))
        done = self.run(tmp_path)
        assert done.returncode == 1
        assert done.stdout == "duplicate: 'a' is at t-0@0 (r at r.jsonl:1), t-0@3 (r at r.jsonl:1)\n"

    def test_files_are_merged_by_time(self, tmp_path):
        first, other = (Writer(tmp_path / f"{name}.jsonl", name) for name in ("b", "a"))
        for writer in (first, other, first):
            writer.write("restarted")
        first.close()
        other.close()
        assert [event.process for event in read([tmp_path])] == ["b", "a", "b"]

    def test_an_incomplete_last_line_is_ignored(self):
        line = json.dumps({"at": 1.0, "process": "w", "type": "restarted"})
        assert len(list(events_of("torn", f"{line}\n{line[:20]}"))) == 1

    @for_each(
        ("line", "message"),
        [
            ("{", "not JSON"),
            ("[]", "not an event of a known type"),
            ('{"type": "sing"}', "not an event of a known type"),
            ('{"type": "begin", "at": 1, "process": "p"}', "begin needs 'txn' as str"),
            ('{"type": "restarted", "at": true, "process": "p"}', "restarted needs 'at' as float"),
            (
                '{"type": "poll", "at": 1, "process": "p", "records": [["t", 0, "1", "v"]]}',
                r"row .* is not \[str, int, int, str\]",
            ),
        ],
    )
    def test_an_invalid_line_is_reported(self, line, message):
        with pytest.raises(HistoryError, match=message) as raised:
            list(events_of("bad", f"{line}\n"))
        assert str(raised.value).startswith("bad:1: ")

    @pytest.mark.parametrize("arguments", [[], ["/nowhere/history"]])
    def test_invalid_arguments_exit_with_2(self, arguments):
        done = self.run(*arguments)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1

    def test_an_empty_history_exits_with_2(self, tmp_path):
        assert self.run(tmp_path).returncode == 2


@pytest.mark.parametrize(("offset", "written"), [(5, 5), (0, 0), (None, -1)])
def test_a_delivery_whose_offset_librdkafka_was_not_told_is_a_sent_event(tmp_path: Path, offset, written) -> None:
    where = {} if offset is None else {"offset": offset}
    message = Message(topic="t", partition=0, value=b"v", **where)
    writer = Writer(tmp_path / "w.jsonl", "w")
    writer.write("sent", topic="t", partition=0, value="v", offset=known_offset(message))
    writer.close()
    (event,) = read([tmp_path])
    assert event["offset"] == written
