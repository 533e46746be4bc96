"""Two supervisors on one directory under load, of which one has to be refused without touching anything (L17).

beside  the first serves
killed  the first was killed, and its nodes are about to end
power   the first was killed together with all nodes
held    the first was killed, and one of its nodes does not end
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil

from barnabas.storage.layout import CLUSTER_STATE, LOCK, META_PROPERTIES
from tests.cluster.disturbances.supervised import Answer, Serving, SupervisedCluster
from tests.cluster.load.work import Work
from tests.support.waiting import wait_for

SITUATIONS = ("beside", "killed", "power", "held")
WAITS = "waiting for the nodes of"


class SupervisorFaults:
    """The faults of one run."""

    def __init__(
        self, cluster: SupervisedCluster, chance: random.Random, work: Work, returns: dict[str, list[float]]
    ) -> None:
        """`returns` gets the seconds from each ready line to the next acknowledgement, by situation."""
        self._cluster, self._chance, self._work, self._returns = cluster, chance, work, returns
        self._situations = itertools.cycle(chance.sample(SITUATIONS, len(SITUATIONS)))
        self._numbers = itertools.count(1)
        self.kinds: dict[str, Callable[[], None]] = {"supervisor": self._two}

    def _two(self) -> None:
        situation = next(self._situations)
        print(f"  {situation}", flush=True)
        getattr(self, f"_{situation}")()
        self._returns.setdefault(situation, []).append(self._work.go_on(self._chance.randrange(50, 300)))

    def _begin(self) -> Serving:
        return self._cluster.begin(f"other-{next(self._numbers)}")

    def _beside(self) -> None:
        first = self._cluster.supervisor
        assert first is not None
        with untouched(self._cluster):
            self._refused(self._begin(), first)
            self._is_sentence(self._cluster.command("start", "1"), 1, "broker 1 runs already")

    def _killed(self) -> None:
        first = self._cluster.supervisor
        assert first is not None
        first.kill9()
        time.sleep(self._chance.choice((0.0, self._chance.uniform(0, 1.0))))
        self._start_again()

    def _power(self) -> None:
        self._cluster.kill_all()
        self._start_again()

    def _start_again(self) -> None:
        """Two begin together: the one that has the directory first serves."""
        self._without_supervisor()
        both = [self._begin(), self._begin()]
        wait_for(
            lambda: any(candidate.has_ended or candidate.ready.exists() for candidate in both),
            "the refusal of one of two",
            60.0,
        )
        serves = next((candidate for candidate in both if not candidate.has_ended), both[0])
        (other,) = (candidate for candidate in both if candidate is not serves)
        self._refused(other, serves)
        self._cluster.serve_with(serves)

    def _held(self) -> None:
        """A node that hangs while it ends, until a start has waited for it, or has given up."""
        first = self._cluster.supervisor
        assert first is not None
        brokers = self._chance.sample(self._cluster.state().brokers, len(self._cluster.brokers))
        first.kill9()
        with held([node.pid for node in brokers]) as pid:
            (node,) = (node for node in brokers if node.pid == pid)
            with untouched(self._cluster):
                self._without_supervisor()
                waiting = self._begin()
                wait_for(lambda: WAITS in waiting.told() or waiting.has_ended, "the wait for the nodes", 60.0)
                self._refused(self._begin(), waiting)
                if gives_up := self._chance.random() < 0.5:
                    note, _, rest = waiting.end().told.partition("\n")
                    assert WAITS in note, note
                    text = rf"{node.name.replace(' ', '-')} \(process {pid}: .* whose supervisor was killed, still run"
                    self._is_sentence(Answer(waiting.process.returncode, rest), 2, text)
        self._cluster.serve_with(self._begin() if gives_up else waiting)

    def _without_supervisor(self) -> None:
        """Commands change nothing."""
        self._is_sentence(self._cluster.command(self._chance.choice(("start", "stop", "kill")), "1"), 1, "does not run")

    def _refused(self, serving: Serving, holder: Serving) -> None:
        """A supervisor is refused, because another one has the directory; the cluster's nodes do not notice it."""
        text = rf"runs already in {re.escape(str(self._cluster.data_dir))} \(process {holder.process.pid}\b"
        self._is_sentence(serving.end(), 2, text)
        assert not serving.ready.exists()

    def _is_sentence(self, outcome: Answer, code: int, text: str) -> None:
        """A command has failed with this code and one sentence."""
        assert outcome.code == code, outcome
        assert re.search(text, outcome.told), outcome
        assert outcome.told.count("\n") == 1, outcome


@contextlib.contextmanager
def held(pids: Sequence[int]) -> Iterator[int]:
    """Have one of the nodes that are about to end hang; its process id.

    It is stopped after its supervisor has ended: the kernel kills stopped processes whose parent ends.
    """
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGSTOP)
            break
    else:
        raise AssertionError("all nodes ended before one could be held")
    try:
        wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, f"the pause of process {pid}")
        yield pid
    finally:
        os.killpg(pid, signal.SIGCONT)


class untouched:  # noqa: N801 - used as a function
    """Nothing that a supervisor writes or starts changes meanwhile."""

    def __init__(self, cluster: SupervisedCluster) -> None:
        self._cluster = cluster
        self._pids = [] if cluster.supervisor is None or cluster.supervisor.has_ended else cluster.running()

    def _seen(self) -> dict[str, Any]:
        directory = self._cluster.data_dir
        files = [directory / CLUSTER_STATE, *directory.glob(f"*/{META_PROPERTIES}")]
        files += [directory / LOCK, directory / "control"] if self._pids else []
        seen: dict[str, Any] = {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}
        seen |= {node.name: psutil.Process(node.pid).create_time() for node in self._pids}
        return seen | {"names": sorted(path.name for path in directory.iterdir())}

    def __enter__(self) -> None:
        self._before = self._seen()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            after = self._seen()
            assert after == self._before, [(name, self._before.get(name), after[name]) for name in after]
