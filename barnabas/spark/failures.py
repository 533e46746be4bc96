"""Translates Spark's exceptions into one sentence for the user."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, IllegalArgumentException

from barnabas.spark.errors import MistakeError, PipelineError

LONGEST = 400
NOT_STARTED = "Python worker failed to connect back|Python daemon failed to launch worker"


class WorkerNotStartedError(PipelineError):
    """A Python process of Spark did not connect within Spark's ten seconds; trying again helps."""


KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"KAFKA_DATA_LOSS|Some data may have been lost|OffsetOutOfRange",
        (
            "records of the source were deleted before they were read ({detail}): to continue without them set "
            "[source] fail_on_data_loss = false, or name a new checkpoint"
        ),
    ),
    (
        r"UnknownTopicOrPartition|does not host this topic-partition|Topic.*not present in metadata",
        "a topic does not exist any more at {bootstrap}: create it again, and name a new checkpoint",
    ),
    (
        r"SaslAuthenticationException|SslAuthenticationException|SSLHandshakeException|Failed to load PEM",
        "the broker at {bootstrap} cannot be used with these keys of TLS and SASL: {detail}",
    ),
    (
        r"TimeoutException|DisconnectException|new KafkaAdminClient|_TRANSPORT|_TIMED_OUT|_ALL_BROKERS_DOWN",
        "the broker at {bootstrap} does not answer: start it, and run the job again; it continues from its checkpoint",
    ),
    (
        r"No module named",
        (
            "a module is missing in the Python that runs Spark's tasks ({detail}): install the driver's packages; "
            "see docs/pipeline.md"
        ),
    ),
    (r"PATH_NOT_FOUND", "a path does not exist: {detail}"),
    (r"PARSE_SYNTAX_ERROR", "an expression is not SQL: {detail}"),
    (r"PatternSyntaxException", "a pattern is not a Java regular expression: {detail}"),
    (
        r"No space left on device",
        "the disk is full: free some space, and run the job again; it continues from its checkpoint",
    ),
    (
        r"STREAMING_STATEFUL_OPERATOR|StateSchema|STATE_STORE.*SCHEMA",
        "the state in the checkpoint does not match the job's file: change it back, or name a new checkpoint",
    ),
)
"""Patterns in exceptions, and their sentences."""
MISTAKES = ("PARSE_SYNTAX_ERROR", "PATH_NOT_FOUND", "PatternSyntaxException")
OF_THE_FILE = (AnalysisException, IllegalArgumentException)
"""Exceptions that Spark raises for invalid queries, before it reads anything."""


def sentence_of(error: Exception, bootstrap: str, of: str = "the job's file") -> PipelineError:
    """The exception as one sentence; a MistakeError if the job's file, or what is named by `of`, is wrong."""
    text = str(error)
    if isinstance(error, AnalysisException) and (column := _unknown_column(text)):
        return MistakeError(column)
    if re.search(NOT_STARTED, text):
        return WorkerNotStartedError("a Python worker of Spark did not start within 10 s: the machine is busy")
    for pattern, sentence in KNOWN:
        if re.search(pattern, text):
            kind = MistakeError if any(name in text for name in MISTAKES) else PipelineError
            return kind(sentence.format(bootstrap=bootstrap, detail=_detail(text)))
    if isinstance(error, OF_THE_FILE):
        return MistakeError(f"Spark cannot run {of}: {_detail(text)}")
    return PipelineError(f"Spark failed: {_detail(text)}")


def _unknown_column(text: str) -> str | None:
    """The sentence about an unknown name in an expression; does not suggest columns that jobs add."""
    match = re.search(
        r"with name (\S+) cannot be resolved(?:\. Did you mean one of the following\? \[([^\]]*)\])?", text
    )
    if match is None:
        return None
    others = [name for name in re.findall(r"`(?:[^`]+`\.`)*([^`]+)`", match[2] or "") if not name.startswith("_")]
    return f"an expression names {match[1]}, which is not a column" + (
        f"; there are {', '.join(others)}" if others else ""
    )


def _detail(text: str) -> str:
    """The exception's own message, without the stack trace."""
    inner = re.findall(r"(?:Exception|Error): (\[?[^\n]+)", text)
    line = inner[-1] if inner else text.strip().splitlines()[0] if text.strip() else "no reason given"
    return re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+.*$", "", line)[:LONGEST].rstrip(" .;")
