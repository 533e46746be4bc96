"""Spark's exceptions as one sentence for the person who runs a job."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, IllegalArgumentException

from barnabas.pipeline.errors import MistakeError, PipelineError

LONGEST = 400
KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"KAFKA_DATA_LOSS|Some data may have been lost|OffsetOutOfRange",
        (
            "records of the source are gone before they were read ({detail}): Spark stopped so that nothing is lost "
            "silently; to go on without them set [source] fail_on_data_loss = false, or name a new checkpoint"
        ),
    ),
    (
        r"UnknownTopicOrPartition|does not host this topic-partition|Topic.*not present in metadata",
        "a topic is not there any more at {bootstrap}: make it again, and name a new checkpoint",
    ),
    (
        r"TimeoutException|DisconnectException|new KafkaAdminClient|_TRANSPORT|_TIMED_OUT|_ALL_BROKERS_DOWN",
        "the broker at {bootstrap} does not answer: see that it runs, and run the job again; it goes on where it was",
    ),
    (
        r"No module named",
        (
            "the Python that runs Spark's tasks lacks a module ({detail}): it needs the driver's packages; "
            "docs/pipeline.md says how they get there"
        ),
    ),
    (r"PATH_NOT_FOUND", "a path does not exist: {detail}"),
    (r"PARSE_SYNTAX_ERROR", "an expression is not SQL: {detail}"),
    (r"PatternSyntaxException", "a pattern is no Java regular expression: {detail}"),
    (
        r"No space left on device",
        "the disk is full: make room, and run the job again; it goes on where it was",
    ),
    (
        r"STREAMING_STATEFUL_OPERATOR|StateSchema|STATE_STORE.*SCHEMA",
        "the checkpoint holds another state than this job's file describes: change it back, or name a new checkpoint",
    ),
)
"""What to look for in an exception, and what it means."""
MISTAKES = ("PARSE_SYNTAX_ERROR", "PATH_NOT_FOUND", "PatternSyntaxException")
OF_THE_FILE = (AnalysisException, IllegalArgumentException)
"""What Spark raises when it is asked for something that cannot be, before it reads anything."""


def sentence_of(error: Exception, bootstrap: str) -> PipelineError:
    """The failure in one sentence; a MistakeError where the job's file is wrong."""
    text = str(error)
    if isinstance(error, AnalysisException) and (column := _unknown_column(text)):
        return MistakeError(column)
    for pattern, sentence in KNOWN:
        if re.search(pattern, text):
            kind = MistakeError if any(name in text for name in MISTAKES) else PipelineError
            return kind(sentence.format(bootstrap=bootstrap, detail=_detail(text)))
    if isinstance(error, OF_THE_FILE):
        return MistakeError(f"Spark cannot do what the job's file asks for: {_detail(text)}")
    return PipelineError(f"Spark failed: {_detail(text)}")


def _unknown_column(text: str) -> str | None:
    """What to say of a name in an expression that nothing has; columns that jobs add themselves are not offered."""
    found = re.search(
        r"with name (\S+) cannot be resolved(?:\. Did you mean one of the following\? \[([^\]]*)\])?", text
    )
    if found is None:
        return None
    others = [name for name in re.findall(r"`(?:[^`]+`\.`)*([^`]+)`", found[2] or "") if not name.startswith("_")]
    return f"an expression names {found[1]}, which is no column" + (
        f"; there are {', '.join(others)}" if others else ""
    )


def _detail(text: str) -> str:
    """What it says of itself, without the stack and Spark's frame around it."""
    inner = re.findall(r"(?:Exception|Error): (\[?[^\n]+)", text)
    line = inner[-1] if inner else text.strip().splitlines()[0] if text.strip() else "it does not say why"
    return re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+.*$", "", line)[:LONGEST].rstrip(" .;")
