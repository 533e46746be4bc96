"""Exit codes and sentences of failures, for every command the same."""

from __future__ import annotations

import errno

from barnabas.cli.connect.settings import SettingsError
from barnabas.cli.failure import exit_code, explain
from barnabas.client.errors import ClientError, NotFound, TimedOut, Unreachable
from barnabas.terminal.question import Declined
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from tests.support.cases import for_each


@for_each(
    ("error", "code"),
    [
        (ClientError("x"), 1),
        (Declined("nothing was changed"), 1),
        (ProtocolError("x"), 1),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (Unreachable("x"), 1),
        (SettingsError("x"), 2),
        (NotFound("x"), 3),
        (TimedOut("x"), 4),
        (KafkaError(ErrorCode.INVALID_CONFIG, "x"), 1),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "x"), 3),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "x"), 4),
        (KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "x"), 5),
    ],
    ids=repr,
)
def test_codes(error: Exception, code: int) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained[1] == code
    assert "\n" not in explained[0]


def test_a_bug_is_not_explained() -> None:
    assert explain(KeyError("x")) is None


def test_every_refusal_of_kafka_is_5_and_everything_not_found_is_3() -> None:
    assert {error.name for error in ErrorCode if exit_code(error) == 5} == {
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
    }
    assert {error.name for error in ErrorCode if exit_code(error) == 3} == {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "GROUP_ID_NOT_FOUND",
        "RESOURCE_NOT_FOUND",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "DELEGATION_TOKEN_NOT_FOUND",
        "LOG_DIR_NOT_FOUND",
        "FETCH_SESSION_ID_NOT_FOUND",
        "SHARE_SESSION_NOT_FOUND",
        "SNAPSHOT_NOT_FOUND",
        "LISTENER_NOT_FOUND",
        "VOTER_NOT_FOUND",
    }
