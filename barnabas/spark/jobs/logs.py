"""logs: error rates and latencies by service and window, from access and application logs, and alerts.

A record is one line. Lines that do not match the pattern are dead letters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.misfits import Misfit, first_kind, first_reason, kinds_of, shortened
from barnabas.spark.frames.schema import fitting
from barnabas.spark.job import Flow, Job, TopicToMake, dead_letter_flow
from barnabas.spark.report.results import CHANGES, as_json_records, show
from barnabas.spark.settings.config import DeadLetters, JobConfig, Source, Table, TopicOutput
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import read_source
from barnabas.spark.topics.sinks import BatchSink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_COMBINED = (
    rf"^(?<service>\S+) \S+ \S+ \[(?<time>[^\]]+)\] {_QUOTED} (?<status>\d{{3}}) (?:\d+|-)"
    rf"(?: {_QUOTED} {_QUOTED})?(?: (?<latency>[\d.]+))?"
)
_APPLICATION = (
    r"^(?<time>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?) +(?<level>[A-Z]+) +"
    r"\[?(?<service>[^\]\s:]+)\]?:? +(?<message>.*?)"
    r"(?:[ ,]?(?:latency|duration|took)(?:_ms)?[=: ]+(?<latency>[\d.]+).*)?$"
)
FORMATS = {
    "access": (_COMBINED, "dd/MMM/yyyy:HH:mm:ss Z"),
    "application": (_APPLICATION, ""),
}
"""The Java regular expression of each format, with named groups, and its time format (default: ISO 8601).

`access` is the combined log format of Apache and nginx, optionally followed by the duration of the request. Its first
word, the host, is the service."""
GROUPS = ("time", "service", "status", "level", "latency")


class Lines(Table):
    """The format of the lines."""

    format: Literal["access", "application", "pattern"] = Field(
        "access",
        description="`access` (combined log format), `application` (time, LEVEL, service, message) or `pattern`.",
    )
    pattern: str = Field(
        "",
        description="For `pattern`: a Java regular expression with the groups `time` and `service`, and `status`, "
        "`level` or `latency`.",
    )
    time_format: str = Field("", description="Format of times, as a Spark datetime pattern. Default: ISO 8601.")
    latency_unit: Literal["ms", "s"] = Field("ms", description="Unit of latencies.")
    error_levels: list[str] = Field(["ERROR", "FATAL", "CRITICAL"], description="Levels that count as errors.")

    @model_validator(mode="after")
    def _has_groups(self) -> Lines:
        if self.format != "pattern":
            if self.pattern:
                raise ValueError('has a pattern, which needs format = "pattern"')
            return self
        missing = [name for name in ("time", "service") if name not in _numbered(self.pattern)]
        if missing:
            raise ValueError(f"needs a pattern with the group (?<{missing[0]}>...)")
        return self


class Alerts(Table):
    """Conditions for alerts."""

    topic: str = Field(description="The topic for alerts; created if it does not exist.")
    error_rate: float = Field(0.05, ge=0, le=1, description="Alert if at least this share of lines are errors.")
    p99_ms: float | None = Field(None, gt=0, description="Alert if the 99th percentile of latency is at least this.")
    min_requests: int = Field(10, gt=0, description="No alert for a window with fewer lines.")


class LogsConfig(JobConfig):
    """The file of a logs job."""

    source: Source = Field(description="The topic with the lines.")
    lines: Lines = Field(Lines(), description="The format of the lines.")
    window: str = Field("1 minute", description="Size of a window.")
    watermark: str = Field("2 minutes", description="How late lines may be, relative to the latest line.")
    output: TopicOutput = Field(description="The topic for the results, one JSON object per service and window.")
    alerts: Alerts = Field(description="Conditions and topic for alerts.")
    dead_letters: DeadLetters = Field(description="For lines that cannot be parsed.")
    console: int = Field(10, ge=0, description="Number of latest windows shown on the terminal; 0: none.")


def parsed_lines(frame: DataFrame, lines: Lines) -> DataFrame:
    """The records with `data` (time, service, is_error, latency_ms), and `kind` and `reason` of dead letters."""
    pattern, time_format = FORMATS.get(lines.format, (lines.pattern, ""))
    groups = _numbered(pattern)
    text = f.col("value").cast("string")
    part = {
        name: f.nullif(f.regexp_extract(text, pattern, groups[name]), f.lit("")) if name in groups else f.lit(None)
        for name in GROUPS
    }
    time = _time(part["time"], lines.time_format or time_format)
    latency = part["latency"].cast("double") * (1000 if lines.latency_unit == "s" else 1)
    is_error = f.coalesce(
        part["status"].cast("int") >= 500,
        f.upper(part["level"]).isin([level.upper() for level in lines.error_levels]),
        f.lit(False),
    )
    data = f.struct(
        time.alias("time"), part["service"].alias("service"), is_error.alias("is_error"), latency.alias("latency_ms")
    )
    held = shortened(text)
    misfits = [
        Misfit("the line is empty", text.isNull()),
        Misfit(f"not a line of the format {lines.format}", ~text.rlike(pattern), held),
        Misfit("its time cannot be read", time.isNull(), part["time"]),
        Misfit("it names no service", part["service"].isNull(), held),
    ]
    kind = first_kind(misfits).alias("kind", metadata={"kinds": kinds_of(misfits)})
    return frame.withColumn("data", data).select("*", kind, first_reason(misfits).alias("reason"))


def _time(text: Column, time_format: str) -> Column:
    if time_format:
        return f.try_to_timestamp(text, f.lit(time_format))
    iso = f.regexp_replace(text, r"([+-]\d{2})(\d{2})$", "$1:$2")  # +0100, which Spark's cast does not accept
    return f.try_to_timestamp(f.replace(iso, f.lit(","), f.lit(".")))


def _numbered(pattern: str) -> dict[str, int]:
    """The numbers of named groups, because Spark's functions need numbers.

    Brackets that are escaped, quoted (`\\Q...\\E`) or in a character class (which may be nested) are not groups.
    """
    numbers: dict[str, int] = {}
    count = depth = 0
    for part in re.findall(r"(?s)\\Q.*?(?:\\E|$)|\\.|\(\?<(?![=!])\w+>|\(\?|\[\^?\]?|.", pattern):
        if part[0] == "[":
            depth += 1
        elif part == "]":
            depth = max(0, depth - 1)
        elif depth == 0 and part.startswith("(") and part != "(?":
            count += 1
            if len(part) > 1:
                numbers[part[3:-1]] = count
    return numbers


def check_pattern(spark: SparkSession, lines: Lines) -> None:
    """MistakeError if Java cannot compile the pattern."""
    try:
        spark.sparkContext._jvm.java.util.regex.Pattern.compile(lines.pattern)  # type: ignore[union-attr]
    except IllegalArgumentException as error:
        message = str(error).splitlines()[0]
        raise MistakeError(f"[lines] pattern is not a Java regular expression: {message}, {lines.pattern!r}") from error


def transform(lines: DataFrame, config: LogsConfig) -> DataFrame:
    """By window and service: requests, errors, error_rate and the percentiles of latency."""
    window = f.window("time", config.window).alias("_window")
    p50, p95, p99 = (f.percentile_approx("latency_ms", share, 1000) for share in (0.5, 0.95, 0.99))
    errors = f.count_if("is_error")
    grouped = lines.withWatermark("time", config.watermark).groupBy(window, "service")
    counted = grouped.agg(
        f.count(f.lit(1)).alias("requests"), errors.alias("errors"), (errors / f.count(f.lit(1))).alias("error_rate"),
        p50.alias("p50_ms"), p95.alias("p95_ms"), p99.alias("p99_ms"),
    )  # fmt: skip
    return counted.select(
        f.col("_window.start").alias("window_start"), f.col("_window.end").alias("window_end"), "service", "requests",
        "errors", "error_rate", "p50_ms", "p95_ms", "p99_ms", f.col("requests").alias(CHANGES),
    )  # fmt: skip


def alerts(results: DataFrame, when: Alerts) -> DataFrame:
    """The results that are alerts, with the reason."""
    rate = f.when(f.col("error_rate") >= when.error_rate, f.lit(f"error rate of {when.error_rate:g} or more"))
    slow = f.when(f.col("p99_ms") >= when.p99_ms, f.lit(f"p99 of {when.p99_ms:g} ms or more")) if when.p99_ms else None
    reasons = [reason for reason in (rate, slow) if reason is not None]
    with_reason = results.withColumn("reason", f.nullif(f.concat_ws(", ", *reasons), f.lit("")))
    return with_reason.where((f.col("requests") >= when.min_requests) & f.col("reason").isNotNull())


def flows(spark: SparkSession, broker: Broker, config: LogsConfig) -> list[Flow]:
    """One query for results and alerts, one for the dead letters."""
    check_pattern(spark, config.lines)
    lines = parsed_lines(read_source(spark, broker, config.source), config.lines)
    name, identity = config.name or JOB.name, ["window_start", "service"]
    result_sink = TopicSink(config.output)
    alert_sink = TopicSink(TopicOutput(topic=config.alerts.topic, delivery=config.output.delivery))

    def write(batch: DataFrame, batch_id: int, where: Broker) -> None:
        result_sink.write(as_json_records(batch, name, identity), batch_id, where)

    def alert(batch: DataFrame, batch_id: int, where: Broker) -> None:
        raised = alerts(batch, config.alerts)
        alert_sink.write(as_json_records(raised, f"{name}-alert", identity), batch_id, where)

    def print_rows(batch: DataFrame, batch_id: int, where: Broker) -> None:  # noqa: ARG001 - signature of every use
        show(batch, config.console, order=identity)

    where = f"{result_sink.where}, alerts in {alert_sink.where}"
    uses = (write, alert, print_rows) if config.console else (write, alert)
    return [
        Flow("results", transform(fitting(lines), config), BatchSink(uses, where)),
        dead_letter_flow(lines, config.dead_letters),
    ]


def topics(config: LogsConfig) -> list[TopicToMake]:
    """The topics for results, alerts and dead letters."""
    return [
        TopicToMake(config.output.topic, config.output.partitions),
        TopicToMake(config.alerts.topic),
        TopicToMake(config.dead_letters.topic),
    ]


def state_of(config: LogsConfig) -> dict[str, str]:
    """The settings that open windows depend on."""
    return {"window": config.window}


JOB = Job(
    "logs",
    "Error rates and latencies by service and window, and alerts.",
    LogsConfig,
    flows,
    topics,
    state_of,
)
