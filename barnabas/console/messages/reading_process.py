"""The program of a process that reads records: it takes tasks (`processes.py`), one after the other.

It ends when the console does, when it is idle for `IDLE_S`, and never uses more than `MOST_MEMORY_BYTES`. It runs with
a lower priority than the console, so that pages come first.
"""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import resource
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.client.security.settings import security_from
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.console.messages.processes import Task

IDLE_S = 30.0
MOST_MEMORY_BYTES = 1024 * 1024 * 1024
"""Of addresses, which are more than what is used: to show a record of 100 MB takes about 320 MB."""
NICE = 5


def main(descriptor: int) -> None:
    """Take tasks until the console ends or has none."""
    os.nice(NICE)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    except (OSError, ValueError):
        pass  # a system without this limit, or with a lower one
    with Connection(descriptor) as connection:
        reader = _Reader(connection)
        try:
            while connection.poll(IDLE_S):
                reader.run(connection.recv())
        except (EOFError, OSError, KeyboardInterrupt):
            pass  # the console has ended
        finally:
            reader.close()


class _Reader:
    """Runs tasks with a client that is kept for the next task of the same user."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cluster: Cluster | None = None
        self._is_for: tuple[str, dict[str, str]] | None = None

    def run(self, task: Task) -> None:
        """Run a task to its end; what it gives and its errors are sent."""
        try:
            given = task.function(self._client(task), *task.arguments)
            if not inspect.isgenerator(given):
                self._connection.send(("result", given))
                return
            for step in given:
                self._connection.send(("step", step))
            self._connection.send(("end", None))
        except OSError:
            raise
        except MemoryError:
            gc.collect()
            self._connection.send(("failure", ClientError("the records need more memory than a search may use")))
        except Exception as error:
            if isinstance(error, ClientError):
                self.close()
            self._connection.send(("failure", _without_frames(error)))

    def close(self) -> None:
        """Close the client."""
        if self._cluster is not None:
            self._cluster.close()
        self._cluster = None

    def _client(self, task: Task) -> Cluster:
        is_for = task.bootstrap, dict(task.properties)
        if self._cluster is None or self._is_for != is_for:
            self.close()
            self._cluster = Cluster(
                task.bootstrap,
                client_id="barnabas-console",
                software_version=__version__,
                timeout_s=task.timeout_s,
                security=security_from(task.properties),
            )
            self._is_for = is_for
        return self._cluster


def _without_frames(error: Exception) -> Exception:
    """The error as it can be sent: an unexpected one with where it was raised, one that cannot be sent as its text."""
    where = "" if isinstance(error, ClientError | KafkaError) else "".join(traceback.format_exception(error))
    error.__traceback__ = error.__context__ = error.__cause__ = None
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    if where:
        error.add_note(where)
    return error
