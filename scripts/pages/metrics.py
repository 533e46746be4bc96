"""`docs/reference/metrics.md`: the metrics of the broker, by family of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.config.keys.own import METRICS_LABELS_MAX
from barnabas.broker.exporter.declarations import EXPORTER, JMX, METRICS, OURS, Metric
from barnabas.broker.metrics.histogram import BOUNDS_S
from barnabas.broker.metrics.labels import OTHER, PARTS_OF_A_NAME
from barnabas.broker.metrics.meter import MOST_BETWEEN
from barnabas.broker.metrics.response_errors import MOST_ITEMS

_HEAD: Final = f"""\
A broker with `barnabas.metrics.listener` shows these metrics at `/metrics`
([operations.md](../operations.md#metrics-of-the-broker-and-its-clients)), after them those that clients push.
Each has one type and one meaning; some are shown under several names, so that existing dashboards work.

What a series counts begins when the broker starts. Times of requests are histograms with the bounds
{", ".join(f"{bound:g}" for bound in BOUNDS_S)} seconds. A busy API has one request of up to {MOST_BETWEEN} timed, which
counts for those before it; each wait is timed. Errors are those of whole requests and of their items, at most
{MOST_ITEMS:,} of one response.

`{METRICS_LABELS_MAX.name}` ({METRICS_LABELS_MAX.default:,}) limits how many topics and how many groups have series of
their own, and {PARTS_OF_A_NAME} times as many partitions. The first ones keep their place until they are deleted; all
others are summed under the label `{OTHER}`, which no topic can have and a group of that name shares."""

_CLUSTER: Final = """\
Every broker of a cluster shows itself, so all of them are to be scraped. A partition's appends, offsets and replicas
are shown by its leader, a log's size by each broker that has a replica, a group by its coordinator. The figures of the
whole cluster are shown by the live broker with the lowest id, and are 0 or absent on the others. So the sum over all
brokers is right for each metric that has a sum; processes that are only controllers have no listener of metrics. The
end of a partition that another broker leads is asked for when a group's lag is shown; without an answer within two
seconds the lag is absent from that scrape."""

_JMX_TEXT: Final = """\
The names that the usual rules of the JMX exporter give to the metrics of Apache Kafka, and those of the process. Where
Kafka has a quantile over a window, the quantile here is over the time since the start. BrokerTopicMetrics have a series
without `topic`, which is of all topics."""

_FAMILIES: Final = {
    OURS: ("Metrics of Barnabas", "Names of our own, with base units."),
    JMX: ("Kafka's metrics, as the JMX exporter names them", _JMX_TEXT),
    EXPORTER: (
        "Metrics of topics and groups, as kafka_exporter names them",
        "For dashboards of kafka_exporter, which is not needed.",
    ),
}


def page(generated: str) -> str:
    """The page; `generated` is the comment that says so."""
    parts = ["# Metrics", generated, _HEAD, "## In a cluster", _CLUSTER]
    for family, (title, text) in _FAMILIES.items():
        parts += [f"## {title}", text, _table(metric for metric in METRICS if metric.family == family)]
    return "\n\n".join(parts) + "\n"


def _table(shown: Iterable[Metric]) -> str:
    lines = ["| name | type | labels | unit | |", "| --- | --- | --- | --- | --- |"]
    for metric in shown:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(
            f"| `{metric.name}` | {metric.kind} | {labels} | {metric.unit} | {metric.help.removesuffix('.')} |"
        )
    return "\n".join(lines)
