"""What is raised when a log is not what was written to it: its partition goes offline, and an operator decides. L2."""

from __future__ import annotations


class DamagedLog(Exception):  # noqa: N818 - named for what is found
    """Data that was safely on the disk is missing or changed; the text says where, in one sentence."""
