"""File operations that never wait for a disk to be durable: for data that is removed when its broker ends."""

from __future__ import annotations

from barnabas.storage.files import File, Files


class UnsyncedFiles(Files):
    """Files whose syncs do nothing."""

    __slots__ = ()

    def sync(self, file: File) -> None:
        """Leave it to the system when the data goes to the disk."""

    def sync_file_system(self, file: File) -> bool:  # noqa: ARG002 - as the seam says
        """There is nothing to make durable."""
        return True

    def sync_dir(self, path: str) -> None:
        """Leave it to the system when the names go to the disk."""
