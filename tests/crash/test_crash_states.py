"""Some of the crash states on every run, and the rules of the simulated disk (L1, L3, I5).

`python -m tests.crash` explores more; BARNABAS_CRASH_STATES sets the number of states, BARNABAS_SEED chooses others.
"""

from __future__ import annotations

from random import Random

from barnabas.storage.files import Files
from tests.crash.explore import StateName, check, states
from tests.support.disks.disk import Image, RecordingDisk
from tests.support.disks.survivors import SECTOR, Kind, Survivors
from tests.support.volume import first_seed, how_many, limited, replay

STATES = how_many("BARNABAS_CRASH_STATES", 100)
EVERY = 80 if STATES < 1000 else 1
"""A history has about 2,000 states: few are spread over several histories, many are all of each."""


@limited(600)
def test_promises_hold_in_every_crash_state() -> None:
    """L1, L3: states of some histories; a failure prints the command that replays its state."""
    print(replay("BARNABAS_CRASH_STATES", STATES))
    seen = history = 0
    while seen < STATES:
        for at, state in enumerate(states(first_seed(), history, choices=3)):
            if at % EVERY:
                continue
            check(*state)
            seen += 1
            if seen == STATES:
                return
        history += 1


def test_state_is_made_again_from_its_name() -> None:
    """A failure can be replayed: the same name gives the same bytes."""
    first = [(str(name), kind, image) for name, kind, image, _, _ in states(5, 0, choices=2)]
    second = [(str(name), kind, image) for name, kind, image, _, _ in states(5, 0, choices=2)]
    assert first == second
    assert len(first) > 100
    assert str(StateName.parse(first[7][0])) == first[7][0]


# --- the rules of the disk


def test_no_operation_reaches_a_real_disk() -> None:
    """A new method of `Files` that `RecordingDisk` lacks would use the real disk, without crashes."""
    operations = {name for name, member in vars(Files).items() if callable(member) and not name.startswith("_")}
    assert operations <= vars(RecordingDisk).keys()


def disk_with_file(data: bytes = b"") -> RecordingDisk:
    return RecordingDisk({"d": {"f": data}})


def images(disk: RecordingDisk, tries: int = 300) -> list[Image]:
    """Many of the possible states after a crash now."""
    survivors = Survivors(disk)
    for operation in disk.operations:
        survivors.take(operation)
    return [survivors.image(kind, Random(seed)) for seed in range(tries) for kind in Kind]


def contents(disk: RecordingDisk, name: str = "f") -> set[bytes | None]:
    """The possible contents of a file after a crash; None where it may be missing."""
    return {image["d"].get(name) for image in images(disk)}  # type: ignore[union-attr, misc]


def test_synced_data_survives_and_other_sectors_independently() -> None:
    disk = disk_with_file()
    file = disk.open("/d/f")
    disk.write_at(file, b"a" * SECTOR, 0)
    disk.sync(file)
    disk.write_at(file, b"b" * SECTOR + b"c" * SECTOR, SECTOR)
    variants = contents(disk)
    assert None not in variants
    assert all(content is not None and content[:SECTOR] == b"a" * SECTOR for content in variants)
    zeros = bytes(SECTOR)
    for tail in (b"", b"b" * SECTOR + zeros, zeros + b"c" * SECTOR, b"b" * SECTOR + b"c" * SECTOR):
        assert b"a" * SECTOR + tail in variants
    disk.sync(file)
    assert contents(disk) == {b"a" * SECTOR + b"b" * SECTOR + b"c" * SECTOR}


def test_write_within_a_sector_is_never_half_there_but_may_be_garbage() -> None:
    disk = disk_with_file(b"old")
    disk.write_at(disk.open("/d/f"), b"new", 3)
    whole = {b"old", b"oldnew", b"old\0\0\0"}
    variants = contents(disk)
    assert whole <= variants
    assert all(content is not None and content.startswith(b"old") for content in variants - whole)
    assert len(variants) > len(whole)


def test_truncation_may_be_lost_while_later_data_is_kept() -> None:
    disk = disk_with_file(b"x" * 2 * SECTOR)
    file = disk.open("/d/f")
    disk.truncate(file, 0)
    disk.write_at(file, b"y" * SECTOR, 0)
    assert b"y" * SECTOR + b"x" * SECTOR in contents(disk)
    disk.sync(file)
    assert contents(disk) == {b"y" * SECTOR}


def test_name_of_a_synced_file_may_be_lost_until_its_directory_is_synced() -> None:
    disk = disk_with_file()
    file = disk.open("/d/new")
    disk.write_at(file, b"data", 0)
    disk.sync(file)
    assert contents(disk, "new") == {None, b"data"}
    disk.sync_dir("/d")
    assert contents(disk, "new") == {b"data"}


def test_rename_replaces_whole_or_not_at_all_and_may_come_before_the_data() -> None:
    disk = disk_with_file(b"old")
    file = disk.open("/d/f.tmp")
    disk.write_at(file, b"new", 0)
    disk.rename("/d/f.tmp", "/d/f")
    assert {b"old", b"new", b""} <= contents(disk)
    assert not any("f" not in image["d"] for image in images(disk))  # type: ignore[operator]
    disk.sync(file)
    disk.sync_dir("/d")
    assert contents(disk) == {b"new"}
    assert contents(disk, "f.tmp") == {None}


def test_files_are_lost_with_a_directory_that_was_never_synced() -> None:
    disk = disk_with_file()
    disk.mkdirs("/d/e")
    file = disk.open("/d/e/f")
    disk.write_at(file, b"data", 0)
    disk.sync(file)
    disk.sync_dir("/d/e")
    assert {"e" in image["d"] for image in images(disk)} == {True, False}  # type: ignore[operator]
    disk.sync_dir("/d")
    assert all(image["d"]["e"] == {"f": b"data"} for image in images(disk))  # type: ignore[index]
