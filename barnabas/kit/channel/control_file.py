"""The file with the address and the token of a channel, for the process that may use it: mode 0600, replaced whole."""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.broker.start.start_errors import StartError


def write_control_file(file: str, text: str) -> None:
    """Write a control file. StartError if that fails."""
    temporary = Path(f"{file}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as written:
            written.write(text + "\n")
        temporary.replace(file)
    except OSError as error:
        raise StartError(f"Cannot write the control file {file}: {error.strerror}") from error
