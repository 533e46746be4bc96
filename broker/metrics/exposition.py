"""Metrics in Prometheus' text format (version 0.0.4), made in pieces of at most about `LINES` lines.

What is shown may change between two pieces: a scrape is no snapshot, but each line is true when it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coord.client_metrics.kept import COUNTER, GAUGE

if TYPE_CHECKING:
    from barnabas.broker.metrics.client_metrics import ClientMetrics
    from barnabas.broker.net.log_ins import LogIns
    from barnabas.coord.client_metrics.kept import KeptMetrics
    from barnabas.wire.clients.broker_load import BrokerLoad

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LINES: Final = 200

_LOG_INS: Final = {
    "successful_authentications": "Log-ins by SASL or by certificate.",
    "failed_authentications": "Log-ins and TLS handshakes that failed.",
    "successful_reauthentications": "Log-ins again before the end of a session.",
    "failed_reauthentications": "Log-ins again that failed.",
    "expired_connections_killed": "Connections that were closed because their session was over.",
}
Figure = tuple[str, str, str, float]
"""Name, type, help and value."""


def figures_of_broker(load: BrokerLoad, connections: int) -> list[Figure]:
    """The broker's own figures."""
    return [
        ("barnabas_cpu_ratio", GAUGE, "Part of the machine's CPUs that the broker uses.", load.cpu),
        ("barnabas_memory_ratio", GAUGE, "Part of the machine's memory that the broker uses.", load.memory),
        ("barnabas_memory_bytes", GAUGE, "Resident memory of the broker.", load.memory_bytes),
        ("barnabas_log_dir_used_ratio", GAUGE, "Used part of the fullest file system with a log directory.", load.disk),
        ("barnabas_appended_bytes_per_second", GAUGE, "Bytes appended to partitions, lately.", load.bytes_per_s),
        ("barnabas_appended_records_per_second", GAUGE, "Records appended, lately.", load.messages_per_s),
        ("barnabas_leader_partitions", GAUGE, "Partitions that the broker leads.", load.leaders),
        ("barnabas_uptime_seconds", GAUGE, "Time since the start.", load.uptime_s),
        ("barnabas_connections", GAUGE, "Open connections of clients and other brokers.", connections),
    ]


def figures_of_clients(clients: ClientMetrics, metrics: KeptMetrics) -> list[Figure]:
    """The broker's figures of client telemetry."""
    prefix = "barnabas_client_metrics"
    return [
        (f"{prefix}_instances", GAUGE, "Client instances that have a subscription.", clients.instance_count),
        (f"{prefix}_clients", GAUGE, "Client instances whose metrics are shown below.", metrics.client_count),
        (f"{prefix}_bytes", GAUGE, "Memory of these metrics, about.", metrics.bytes),
        (f"{prefix}_pushes_total", COUNTER, "Pushes that clients have made.", metrics.pushes),
        (
            f"{prefix}_dropped_total",
            COUNTER,
            "Values that barnabas.client.metrics.max.bytes had no room for.",
            metrics.dropped,
        ),
    ]


def text_of_figures(figures: list[Figure]) -> str:
    """The lines of the broker's own metrics."""
    return "".join(
        f"# HELP {name} {text}\n# TYPE {name} {kind}\n{name} {_number(value)}\n" for name, kind, text, value in figures
    )


def text_of_log_ins(log_ins: Mapping[str, LogIns]) -> str:
    """The lines about log-ins, by the name of the listener; none without a secured listener."""
    lines: list[str] = []
    for field, text in _LOG_INS.items() if log_ins else ():
        lines += [f"# HELP barnabas_{field}_total {text}", f"# TYPE barnabas_{field}_total {COUNTER}"]
        lines += [
            f'barnabas_{field}_total{{listener="{name}"}} {getattr(counts, field)}' for name, counts in log_ins.items()
        ]
    return _joined(lines) if lines else ""


def text_of_clients(metrics: KeptMetrics) -> Iterator[str]:
    """The lines of all metrics of clients, piece by piece."""
    lines: list[str] = []
    for name in list(metrics.families):
        family = metrics.families.get(name)
        if family is None:
            continue
        lines.append(f"# TYPE {name} {family.kind}")
        for client, values in list(family.of.items()):
            for series, value in list(values.items()):
                labels = f"{client.labels},{series}" if series else client.labels
                lines.append(f"{name}{{{labels}}} {_number(value)}")
                if len(lines) >= LINES:
                    yield _joined(lines)
                    lines = []
        if len(lines) >= LINES:
            yield _joined(lines)
            lines = []
    if lines:
        yield _joined(lines)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in {float("inf"), float("-inf")}:
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
