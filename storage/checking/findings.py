"""What a check has found: one sentence each, about one file or directory."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["damage", "notice"]
"""Damage keeps a partition offline or would mislead a reader; what is noticed the next start settles by itself."""


class Finding(NamedTuple):
    """One thing that was found."""

    kind: Kind
    path: str
    text: str


class PartitionReport:
    """A partition's directory after a check."""

    __slots__ = ("batches", "directory", "end_offset", "findings", "partition", "segments", "size", "start", "topic")

    def __init__(self, directory: str, topic: str, partition: int) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.segments = 0
        self.batches = 0
        self.size = 0
        self.start = 0
        self.end_offset = 0
        self.findings: list[Finding] = []

    def damage(self, name: str, text: str) -> None:
        """Note what a broker would not get over; without a name it is about the directory."""
        self.findings.append(Finding("damage", self._path(name), text))

    def notice(self, name: str, text: str) -> None:
        """Note what is out of the ordinary and does no harm."""
        self.findings.append(Finding("notice", self._path(name), text))

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}" if name else self.directory

    @property
    def is_damaged(self) -> bool:
        """Whether something needs a decision."""
        return any(finding.kind == "damage" for finding in self.findings)


class DirectoryReport:
    """A log directory after a check."""

    __slots__ = ("findings", "is_clean", "partitions", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_clean = False
        """Whether the last stop was a clean one."""
        self.partitions: list[PartitionReport] = []
        self.findings: list[Finding] = []

    def damage(self, name: str, text: str) -> None:
        """Note what a broker would not get over."""
        self.findings.append(Finding("damage", f"{self.path}/{name}", text))

    @property
    def is_damaged(self) -> bool:
        """Whether something needs a decision."""
        return bool(self.findings) or any(partition.is_damaged for partition in self.partitions)
