"""The findings of a check: one sentence each, about one file or directory."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["damage", "notice"]
"""Damage keeps a partition offline or causes wrong reads; a notice is repaired by the next start."""


class Finding(NamedTuple):
    """One finding about the file or directory at `path`."""

    kind: Kind
    path: str
    text: str


class PartitionReport:
    """The result of checking a partition's directory."""

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
        """Add damage in a file; an empty name stands for the directory."""
        self.findings.append(Finding("damage", self._path(name), text))

    def notice(self, name: str, text: str) -> None:
        """Add something unusual that is harmless."""
        self.findings.append(Finding("notice", self._path(name), text))

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}" if name else self.directory

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found, which needs an operator's decision."""
        return any(finding.kind == "damage" for finding in self.findings)


class DirectoryReport:
    """The result of checking a log directory."""

    __slots__ = ("findings", "is_clean", "partitions", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_clean = False
        """Whether the last stop was clean."""
        self.partitions: list[PartitionReport] = []
        self.findings: list[Finding] = []

    def damage(self, name: str, text: str) -> None:
        """Add damage in a file or directory of the log directory."""
        self.findings.append(Finding("damage", f"{self.path}/{name}", text))

    def notice(self, name: str, text: str) -> None:
        """Add something unusual in the log directory that is harmless."""
        self.findings.append(Finding("notice", f"{self.path}/{name}", text))

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found, which needs an operator's decision."""
        is_damaged = any(finding.kind == "damage" for finding in self.findings)
        return is_damaged or any(partition.is_damaged for partition in self.partitions)
