"""What administrators do to a cluster under load, in the middle of faults: nothing of it may stop a partition.

unregister  a broker that is stopped or killed is unregistered, and registers again when it starts (R11)
configure   min.insync.replicas and other configs of the topic change, and a broker is killed right after
"""

from __future__ import annotations

import random
from collections.abc import Callable

from barnabas.client.admin.cluster import describe_cluster, unregister_broker
from barnabas.client.admin.configs import SET, ConfigChange, alter_config
from tests.cluster.load.work import Work
from tests.support.cluster.asking import client
from tests.support.cluster.clusters import Cluster
from tests.support.processes.server import Server
from tests.support.waiting import ANY_ERROR, wait_for

CHOICES = {
    "min.insync.replicas": ("1", "2"),
    "retention.ms": ("604800000", "86400000"),
    "segment.bytes": ("1048576", "1073741824"),
}


class AdminFaults:
    """The faults of one run."""

    def __init__(self, cluster: Cluster, chance: random.Random, topic: str, work: Work) -> None:
        self._cluster = cluster
        self._chance = chance
        self._topic = topic
        self._work = work
        self.kinds: dict[str, Callable[[], None]] = {"unregister": self._unregister, "configure": self._configure}

    def _any_broker(self) -> tuple[int, Server]:
        broker = self._chance.choice(sorted(self._cluster.brokers))
        return broker, self._cluster.brokers[broker]

    def _others(self, broker: int) -> str:
        return ",".join(node.bootstrap for number, node in self._cluster.brokers.items() if number != broker)

    def _go_on(self) -> None:
        self._work.go_on(self._chance.randrange(50, 300))

    def _unregister(self) -> None:
        broker, node = self._any_broker()
        if self._chance.random() < 0.5:
            node.stop()
        else:
            node.kill9()

        def is_gone() -> bool:
            with client(self._others(broker)) as asking:
                known = {registered.broker_id for registered in describe_cluster(asking, with_fenced=True).brokers}
                if broker in known:
                    unregister_broker(asking, broker)
                return broker not in known

        wait_for(is_gone, f"broker {broker} is unregistered", errors=ANY_ERROR)
        self._go_on()
        node.restart()

    def _configure(self) -> None:
        """Change a config; afterwards a broker is killed, so that the ISR of the changed partitions changes too."""
        name = self._chance.choice(sorted(CHOICES))
        for value in self._chance.sample(CHOICES[name], 2):
            with client(self._cluster.bootstrap) as asking:
                alter_config(asking, "topic", self._topic, [ConfigChange(name, SET, value)])
            _, node = self._any_broker()
            node.kill9()
            self._go_on()
            node.restart()
