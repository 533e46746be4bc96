"""A GroupCoordinator with a cluster of topics, for groups whose partitions the coordinator assigns."""

from __future__ import annotations

from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.coord.groups.topics import Topic
from tests.coord.groups.group_driver import Driver


def topic_id(name):
    return name.encode().ljust(16, b"\0")


class GroupTopics:
    """Topics by name; an id is derived from the name and the incarnation."""

    def __init__(self, **sizes):
        self.topics = {}
        for name, partitions in sizes.items():
            self.create(name, partitions)

    def create(self, name, partitions, incarnation=0, racks=()):
        self.topics[name] = Topic(topic_id(f"{name}{incarnation or ''}"), name, partitions, racks)

    def by_name(self, name):
        return self.topics.get(name)

    def by_id(self, uuid):
        return next((topic for topic in self.topics.values() if topic.topic_id == uuid), None)

    def names(self):
        return list(self.topics)


class ClusterDriver(Driver):
    def __init__(self, cluster, settings, **config):
        self.cluster, self.settings = cluster, settings
        super().__init__(**config)

    def fresh(self):
        return GroupCoordinator(
            self.config, lambda: f"id{next(self.ids)}", self.cluster, lambda group_id: self.settings
        )

    def changed(self, *names):
        """These topics were created, deleted or changed."""
        self.handle(self.coordinator.metadata_changed(set(names), self.at))
