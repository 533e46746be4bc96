"""Replaces the certificate of a broker's listener every so many seconds, while a suite of tests uses the broker.

The new certificate has a new key and the same CA. It comes by turns as a changed file and by the dynamic config
`ssl.keystore.location`, as far as the broker has both. A rotation counts when a new connection is shown the new
certificate. Of several brokers the one that was taken last is rotated, since the test uses it. A test may stop it at
any time: a rotation in progress is not counted.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

PATIENCE_S = 60.0
"""How long a new certificate may take until it is shown, seconds."""
POLL_S = 0.1


class Rotated(Protocol):
    """A broker with a listener whose certificate can be replaced."""

    ways: tuple[str, ...]
    """How: `file`, `config`."""

    @property
    def is_running(self) -> bool: ...

    def replace(self, way: str) -> bytes:
        """Put a new certificate (DER) in place. OSError or ClientError if the broker cannot be asked now."""
        ...

    def shown(self) -> bytes:
        """The certificate that a new connection is shown. OSError if there is no connection."""
        ...


class Rotator:
    """Rotates certificates of the brokers that it has taken, in a thread of its own."""

    def __init__(self, every_s: float, say: Callable[[str], object] = print) -> None:
        self.every_s = every_s
        self.rotations: Counter[str] = Counter()
        """By way."""
        self.findings: list[str] = []
        """Rotations that were refused, or that took no effect in time."""
        self._say = say
        self._brokers: list[Rotated] = []
        self._busy = threading.Lock()
        """Held from a replacement until it is shown."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rotator", daemon=True)

    def __enter__(self) -> Rotator:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def summary(self) -> str:
        """How often, in words."""
        parts = ", ".join(f"{count} by {way}" for way, count in sorted(self.rotations.items()))
        total = self.rotations.total()
        return f"certificate rotated {total} time{'s'[: total > 1]} ({parts})" if parts else "no certificate rotated"

    def take(self, broker: Rotated) -> None:
        """Rotate the certificates of this broker from now on."""
        self._brokers.append(broker)

    def leave(self, broker: Rotated) -> None:
        """Rotate no more certificates of this broker."""
        with self._busy:
            self._brokers.remove(broker)

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(self.every_s):
            with self._busy:
                broker = self._brokers[-1] if self._brokers else None
                if broker is None or not broker.is_running:
                    continue
                way = broker.ways[turn % len(broker.ways)]
                turn += 1
                try:
                    self._rotate(broker, way)
                except Exception as error:
                    self.findings.append(f"rotation by {way}: {type(error).__name__}: {error}")

    def _rotate(self, broker: Rotated, way: str) -> None:
        """One rotation, until the new certificate is shown or the test has stopped the broker."""
        from barnabas.client.errors import TimedOut, Unreachable

        deadline = time.monotonic() + PATIENCE_S
        certificate: bytes | None = None
        while broker.is_running:
            with contextlib.suppress(OSError, TimedOut, Unreachable):  # the test starts the broker again just now
                certificate = certificate or broker.replace(way)
                if broker.shown() == certificate:
                    self.rotations[way] += 1
                    self._say(f"rotation {self.rotations.total()}: by {way}")
                    return
            if time.monotonic() > deadline:
                self.findings.append(f"a rotation by {way} took no effect in {PATIENCE_S:g} s")
                return
            time.sleep(POLL_S)
