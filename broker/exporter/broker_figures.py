"""What /metrics shows of the whole broker: requests by API, connections, the loop, disks, the process, the cluster."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from barnabas.broker.metrics.histogram import Histogram
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.exporter.page import Page
    from barnabas.broker.metrics.client_metrics import ClientMetrics
    from barnabas.broker.metrics.meter import Meter
    from barnabas.broker.net.acceptor import Listener
    from barnabas.wire.clients.broker_load import BrokerLoad

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""As the JMX exporter shows Kafka's histograms."""
RUNNING: Final = 3
"""Kafka's BrokerState.RUNNING: a single node has no other state that a scrape could see."""
PARTITIONS_OF_A_STEP: Final = 100
_TIMES: Final = ("queue", "handling", "waiting", "sending", "total")


def request_steps(page: Page, meter: Meter) -> Iterator[None]:
    """Add the samples by API."""
    for key in ApiKey:
        count = meter.requests(key)
        if not count:
            continue
        request = _kafka_name(key)
        times = meter.times.get(key)
        histograms = {} if times is None else {field: getattr(times, field) for field in _TIMES}
        if key in meter.throttled:
            histograms["throttled"] = meter.throttled[key]
        total = histograms.get("total")
        page.add("API", (request,), {"requests": count, "total_count": total and total.count, **histograms})
        for quantile in QUANTILES:
            values = {field: 1000 * histogram.quantile(quantile) for field, histogram in histograms.items()}
            page.add("API and quantile", (request, f"{quantile:g}"), values)
        yield
    for (api_key, code), count in list(meter.errors.items()):
        page.add("API and error", (_kafka_name(ApiKey(api_key)), _error_name(code)), {"errors": count})


def _kafka_name(key: ApiKey) -> str:
    """The name of an API in Kafka's metrics: Produce, Fetch, FindCoordinator."""
    return "".join(word.capitalize() for word in key.name.split("_"))


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def add_loop(page: Page, meter: Meter, idle: float) -> None:
    """Add the samples of the loop, the garbage collector and the cleaner."""
    meter.count_turns()
    cleaner = meter.cleaner
    totals = None if cleaner is None else cleaner.totals
    page.add(
        "broker",
        (),
        {
            "idle": idle,
            "turns": meter.turn_times,
            "longest_turn": meter.turn_times.longest,
            "disk_waits": meter.disk_waits,
            "longest_disk_wait": meter.disk_waits.longest,
            "compactions": totals.logs if totals else 0,
            "compaction_s": totals.seconds if totals else 0,
            "compaction_read": totals.bytes_read if totals else 0,
            "compaction_written": totals.bytes_written if totals else 0,
            "records_read": totals.records_read if totals else 0,
            "records_kept": totals.records_kept if totals else 0,
            "uncleanable": cleaner.uncleanable_count if cleaner else 0,
            "hidden": meter.topic_labels.hidden + meter.group_labels.hidden,
        },
    )
    for generation, collections in enumerate(meter.collections):
        page.add("generation", (str(generation),), {"collections": collections, "longest": collections.longest})
    page.add("garbage collector", ("Python",), {"collections": Histogram.sum(meter.collections)})


def add_load(page: Page, load: BrokerLoad, connections: int) -> None:
    """Add the samples that `barnabas cluster status` shows too."""
    page.add("broker", (), {**load._asdict(), "connections": connections})


def add_listeners(page: Page, listeners: Iterable[Listener], connections: Mapping[str, int]) -> None:
    """Add the samples by listener; log-ins of the listeners that have any."""
    for listener in listeners:
        values: dict[str, float] = {"connections": connections.get(listener.name, 0)}
        if listener.protocol != "PLAINTEXT":
            values |= asdict(listener.log_ins)
        page.add("listener", (listener.name,), values)
        page.add("network processor", (listener.name, "0"), values)


def add_clients(page: Page, clients: ClientMetrics) -> None:
    """Add the samples of client telemetry."""
    if clients.kept is None:
        return
    kept = clients.kept
    page.add(
        "broker",
        (),
        {
            "instances": clients.instance_count,
            "clients": kept.client_count,
            "kept_bytes": kept.bytes,
            "pushes": kept.pushes,
            "dropped": kept.dropped,
        },
    )


def cluster_steps(page: Page, broker: Broker) -> Iterator[None]:
    """Add the samples of the cluster, which the live broker with the lowest id tells, so that sums count them once."""
    image = broker.image
    node_id = broker.node_id
    live = sorted(known.id for known in image.live_brokers()) or [node_id]
    own = image.brokers.get(node_id)
    addresses = [f"{endpoint.host}:{endpoint.port}" for endpoint in own.endpoints] if own is not None else []
    page.add("known broker", (str(node_id), addresses[0] if addresses else ""), {"info": node_id})
    state = broker.lifecycle.state if "lifecycle" in broker.__dict__ else RUNNING
    page.add("broker", (), {"state": int(state)})
    figures: Counter[str] = Counter(dict.fromkeys(_OF_CLUSTER, 0))
    if live[0] == node_id:
        figures["controllers"] = 1
        figures["brokers"] = figures["active_brokers"] = len(live)
        figures["fenced_brokers"] = len(image.brokers) - len(live) if image.brokers else 0
        seen = 0
        for topic in list(image.topics.values()):
            figures["topics"] += 1
            for partition in list(topic.partitions.values()):
                seen += 1
                figures["partitions"] += 1
                figures["leaderless"] += partition.leader == NO_LEADER
                figures["imbalanced"] += partition.leader not in (NO_LEADER, partition.replicas[0])
                if seen % PARTITIONS_OF_A_STEP == 0:
                    yield
    else:
        del figures["brokers"]
    page.add("cluster", (), figures)


_OF_CLUSTER: Final = (
    "controllers",
    "brokers",
    "active_brokers",
    "fenced_brokers",
    "topics",
    "partitions",
    "leaderless",
    "imbalanced",
)


class Machine:
    """What the kernel tells of the process and of the disks. It is read in a thread."""

    def __init__(self) -> None:
        self.process: dict[str, float] = {}
        self.disk: dict[str, float] = {}
        self.volumes: dict[str, tuple[int, int]] = {}

    def read(self, broker: Broker) -> None:
        """Read everything that there is; on systems without /proc that is less."""
        times = os.times()
        self.process = {"cpu_s": times.user + times.system, "threads": threading.active_count()}
        for source in (_statistics, _descriptors):
            try:
                self.process |= source()
            except (OSError, ValueError, IndexError):
                continue
        try:
            with open("/proc/self/io", encoding="ascii") as file:
                lines = dict(line.split(": ") for line in file.read().splitlines())
            self.disk = {"disk_read": int(lines["read_bytes"]), "disk_written": int(lines["write_bytes"])}
        except (OSError, ValueError, KeyError):
            self.disk = {}
        for log_dir in broker.log_dirs.working:
            try:
                self.volumes[log_dir.path] = log_dir.volume()
            except OSError:  # it is reported where it is used
                continue

    def add(self, page: Page) -> None:
        """Add the samples."""
        page.add("process", (), self.process)
        page.add("disk", (), self.disk)
        page.add("memory area", ("heap",), {"resident": self.process.get("resident")})
        for path, (size, free) in self.volumes.items():
            page.add("log directory", (path,), {"volume_size": size, "volume_free": free})


def _statistics() -> dict[str, float]:
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    with open("/proc/stat", "rb") as file:
        booted_at = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        "threads": int(fields[17]),
        "started_at": booted_at + int(fields[19]) / ticks,
        "virtual": int(fields[20]),
        "resident": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
    }


def _descriptors() -> dict[str, float]:
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    limit = {} if most == resource.RLIM_INFINITY else {"max_fds": most}
    return {"open_fds": sum(1 for _ in os.scandir("/proc/self/fd")), **limit}
