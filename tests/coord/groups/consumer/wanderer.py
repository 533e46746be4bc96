"""A member of the consumer protocol that joins, leaves and fails at random."""

from __future__ import annotations

from tests.coord.groups.consumer.consumer_driver import Client
from tests.coord.groups.modern.modern_client import Wanderer

NAMES = ("t", "u", "v", "w")


class ConsumerWanderer(Wanderer, Client):
    """A client in a bad network. It takes its time to revoke partitions."""

    changes_subscription = True

    def __init__(self, driver, random, index):
        instance_id = self.wander(random, index)
        super().__init__(driver, self.next_id(), instance_id=instance_id)
        self.choose()

    def choose(self):
        self.topics = self.random.sample(NAMES, self.random.randrange(1, 4))
        self.regex = self.random.choice([None, None, "t|u", "[uvw]", ""])
        self.assignor = self.random.choice([None, "uniform", "range"])
        self.sends_all = True

    def surplus(self):
        return [(key, index) for key, indexes in self.owned.items() for index in indexes - self.target.get(key, set())]

    def revoke(self, some):
        for key, index in some:
            self.owned = {k: v - {index} if k == key else v for k, v in self.owned.items()}
            self.owned = {k: v for k, v in self.owned.items() if v}
