"""From a seed to histories, from a history to crash states, from a state to a check; and from a name to a state.

A state's name is `seed:history:episode:cut:choice`. An episode is the work on one disk; the next one starts on what a
power failure has left of it. `cut` is the number of operations of the episode before the crash, `choice` selects one of
the possible states after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from tests.crash.host import Counters, Host, Setup
from tests.crash.ledger import Ledger
from tests.crash.verify import check_host
from tests.crash.workload import Workload
from tests.support.disks.disk import Image, Note, RecordingDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.logs.log_driver import small_config

EPISODES = 3
_POLICIES = ("always", "always", "os", "interval")


class StateName(NamedTuple):
    """The name of a state, from which it can be made again."""

    seed: int
    history: int
    episode: int
    cut: int
    choice: int

    @classmethod
    def parse(cls, text: str) -> StateName:
        """Parse `seed:history:episode:cut:choice`."""
        return cls(*map(int, text.split(":")))

    def __str__(self) -> str:
        return ":".join(map(str, self))


class CrashFailure(AssertionError):  # noqa: N818 - the name says what happened
    """A crash state in which a promise is broken."""

    def __init__(self, name: StateName, kind: Kind, cause: BaseException) -> None:
        notes = "".join(f"\n  {note[:2000]}" for note in getattr(cause, "__notes__", ()))
        super().__init__(
            f"{kind.name} state {name}: {type(cause).__name__}: {cause}{notes}\n"
            f"replay it with: python -m tests.crash --replay {name}"
        )
        self.name = name


@dataclass
class Episode:
    """The work on one disk, and the promises when it began."""

    disk: RecordingDisk
    setup: Setup
    ledger: Ledger
    counters: Counters


def setup_of(random: Random) -> Setup:
    """The random setup of a history."""
    index_interval = random.choice((0, 150, 400))
    config = small_config(
        segment_bytes=random.choice((1500, 1500, 4000)),
        index_interval_bytes=index_interval,
        file_delete_delay_ms=500,
        retention_bytes=random.choice((-1, 2000)),
    )
    compacted = small_config(
        segment_bytes=random.choice((700, 1500)),
        index_interval_bytes=index_interval,
        file_delete_delay_ms=500,
        cleanup_policy=frozenset({"compact"}),
        delete_retention_ms=random.choice((0, 100)),
    )
    paths = random.choice((("/data",), ("/data",), ("/disk1", "/disk2")))
    return Setup(paths, random.choice(_POLICIES), config, compacted, follows=random.random() < 0.4)


def episodes(seed: int, history: int) -> Iterator[Episode]:
    """The episodes of a history, each when its work is done."""
    random = Random(f"{seed}:{history}")
    setup = setup_of(random)
    counters = Counters()
    ledger, image = Ledger(), Image()
    for number in range(EPISODES):
        disk = RecordingDisk(image)
        episode = Episode(disk, setup, ledger.copy(), counters)
        work = Workload(disk, setup, random, ledger, counters)
        work.start()
        work.run(random.randint(20, 80))
        yield episode
        if number + 1 < EPISODES:
            image, ledger = _power_failure(episode, random)


def _power_failure(episode: Episode, random: Random) -> tuple[Image, Ledger]:
    """The disk after a power failure in an episode, and the promises at that moment."""
    cut = random.randint(len(episode.disk.operations) // 2, len(episode.disk.operations))
    survivors, ledger = _at(episode, cut)
    for partition in ledger.partitions.values():
        partition.written_end = 0  # only promised for a kill -9
    kind = random.choice((Kind.LOST, Kind.ORDERED, Kind.MIXED, Kind.MIXED, Kind.GARBLED))
    return survivors.image(kind, random), ledger


def _at(episode: Episode, cut: int) -> tuple[Survivors, Ledger]:
    survivors, ledger = Survivors(episode.disk), episode.ledger.copy()
    for operation in episode.disk.operations[:cut]:
        _take(operation, survivors, ledger)
    return survivors, ledger


def _take(operation: object, survivors: Survivors, ledger: Ledger) -> None:
    survivors.take(operation)  # type: ignore[arg-type]
    if isinstance(operation, Note) and operation.what is not None:
        ledger.take(operation.what)


def states(seed: int, history: int, choices: int) -> Iterator[tuple[StateName, Kind, Image, Episode, Ledger]]:
    """The distinct crash states of a history: at every cut up to `choices` of them."""
    for number, episode in enumerate(episodes(seed, history)):
        survivors, ledger = Survivors(episode.disk), episode.ledger.copy()
        met: set[int] = set()
        promises = 0
        for cut, operation in enumerate(episode.disk.operations, 1):
            _take(operation, survivors, ledger)
            promises += isinstance(operation, Note)
            for choice in range(choices):
                name = StateName(seed, history, number, cut, choice)
                kind, image = _choose(name, survivors)
                state = hash((promises, kind is Kind.KEPT, _hash(image)))
                if state not in met:
                    met.add(state)
                    yield name, kind, image, episode, ledger


def _choose(name: StateName, survivors: Survivors) -> tuple[Kind, Image]:
    random = Random(str(name))
    kinds = (Kind.KEPT, Kind.LOST)
    kind = kinds[name.choice] if name.choice < len(kinds) else Kind(random.randrange(Kind.ORDERED, len(Kind)))
    return kind, survivors.image(kind, random)


def _hash(image: Image) -> int:
    return hash(
        frozenset((name, _hash(content) if isinstance(content, dict) else content) for name, content in image.items())
    )


def check(name: StateName, kind: Kind, image: Image, episode: Episode, ledger: Ledger) -> None:
    """Recover from a state and check it against the ledger, sometimes after further stops. CrashFailure."""
    random = Random(f"check {name}")
    try:
        host = _recover(image, episode, ledger, random, killed=kind is Kind.KEPT)
        if random.random() < 0.1:
            _stop_and_check(host, ledger, random)
        if random.random() < 0.2:
            _crash_again(host, episode, ledger, random)
    except Exception as error:
        raise CrashFailure(name, kind, error) from error


def _recover(image: Image, episode: Episode, ledger: Ledger, random: Random, *, killed: bool) -> Host:
    host = Host(RecordingDisk(image), episode.setup, replace(episode.counters))
    host.start(ledger.copy())
    check_host(host, ledger, random, killed=killed)
    return host


def _stop_and_check(host: Host, ledger: Ledger, random: Random) -> None:
    """A clean stop after the recovery changes nothing."""
    ends = {key: (log.log_start_offset, log.log_end_offset) for key, log in host.log_dirs.logs.items()}
    host.log_dirs.close()
    again = Host(host.disk, host.setup, Counters(10**6))
    again.start(ledger.copy())
    try:
        check_host(again, ledger, random, killed=False)
    except Exception as error:
        error.add_note("after the clean stop that followed the recovery")
        raise
    assert {key: (log.log_start_offset, log.log_end_offset) for key, log in again.log_dirs.logs.items()} == ends
    again.log_dirs.release()


def _crash_again(host: Host, episode: Episode, ledger: Ledger, random: Random) -> None:
    """A power failure during or after the recovery (and the stop after it): all promises hold again."""
    cut = random.randint(1, len(host.disk.operations))
    survivors, ledger = Survivors(host.disk), ledger.copy()
    for operation in host.disk.operations[:cut]:
        _take(operation, survivors, ledger)
    kind = Kind(random.randrange(len(Kind)))
    try:
        _recover(survivors.image(kind, random), episode, ledger, random, killed=False)
    except Exception as error:
        error.add_note(f"after a second crash ({kind.name}) at operation {cut} of the recovery")
        raise


def replay(name: StateName) -> None:
    """Make one state again and check it. CrashFailure."""
    for number, episode in enumerate(episodes(name.seed, name.history)):
        if number == name.episode:
            survivors, ledger = _at(episode, name.cut)
            kind, image = _choose(name, survivors)
            check(name, kind, image, episode, ledger)
            return
