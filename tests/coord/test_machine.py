"""Results of the coordinators."""

from __future__ import annotations

from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode

AT = Moment(0.0, 0)


def test_a_failed_result_replies_with_the_error():
    result = Result()
    result.reply("plain", "answer")
    result.reply("erring", "answer", lambda error: f"error {error.value}")

    def undo(at):
        undone = Result()
        undone.reply("undone", at.now_ms)
        return undone

    result.on_failure(undo)
    instead = result.failed(ErrorCode.NOT_COORDINATOR, AT)
    assert [(reply.ticket, reply.made()) for reply in instead.replies] == [
        ("plain", "answer"),
        ("erring", "error 16"),
        ("undone", 0),
    ]
    assert not instead.records
