"""Wrong files in a data directory: a refused start or an offline partition; never other records, never a traceback.

`storage check` finds what a start refuses and what keeps a partition offline.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from random import Random

import pytest

from barnabas.cli.files.storage import read_topic_ids
from barnabas.storage import layout
from barnabas.storage.checking.check import check_directory
from barnabas.storage.checking.repair import Repair
from barnabas.storage.files import Files, ReadOnlyFiles
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.broker.wrong_files import TOPICS, VALUES, Outcome, copied, make_data, small_files, wrong_ways
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append
from tests.support.volume import first_seed, how_many

SEED = first_seed()
FLIPS = max(1, how_many("BARNABAS_EXAMPLES", 20) // 20)
COMPLETE = dict.fromkeys(TOPICS, VALUES)
CHECKED_BY_THE_START = ("__cluster_metadata-0/quorum-state",)
"""Files of which `storage check` knows only whether they are files."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "data"
    make_data(path)
    return path


def is_found(path: Path) -> bool:
    """Whether `storage check` finds damage."""
    return check_directory(ReadOnlyFiles(), str(path), read_topic_ids([str(path)])).is_damaged


def test_each_wrong_file_is_refused_or_keeps_its_partition_offline(data: Path, tmp_path: Path) -> None:
    random = Random(SEED)
    offline = refused = 0
    for file in small_files(data):
        name = str(file.relative_to(data))
        if name.startswith("u-0"):
            continue
        for what, spoil in wrong_ways(file, random, FLIPS):
            path = copied(data, tmp_path / "copy")
            spoil(path / name)
            case = f"{name}: {what} (BARNABAS_SEED={SEED})"
            is_noticed = is_found(path)
            outcome = Outcome(path)
            if outcome.refusal:
                refused += 1
                assert "\n" not in outcome.refusal, case
                assert is_noticed or "belongs to" in outcome.refusal or name in CHECKED_BY_THE_START, case
                continue
            assert outcome.values["u"] == VALUES, case
            if outcome.values["t"] != VALUES:
                offline += outcome.values["t"] is None
                assert is_noticed, case
                is_log = name.endswith(".log")
                assert outcome.values["t"] is None or (is_log and "flipped" in what), case
    assert refused > 20
    assert offline > 10


def test_a_topic_id_that_was_changed_keeps_the_partition_offline(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = copied(data, tmp_path / "copy")
    metadata = path / "t-0" / layout.PARTITION_METADATA
    text = metadata.read_text()
    metadata.write_text(text[:-5] + ("A" if text[-5] != "A" else "B") + text[-4:])
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert Outcome(path).values == {"t": None, "u": VALUES}
    assert "t-0 is offline" in caplog.text
    assert "no topic with the former id was deleted" in caplog.text
    assert (path / "t-0").is_dir()
    assert is_found(path)
    topic_ids = read_topic_ids([str(path)])
    assert topic_ids is not None
    Repair(Files(), str(path), ("t", 0), topic_ids["t"]).run()
    assert metadata.read_text() == text
    assert not is_found(path)
    assert Outcome(path).values == COMPLETE


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_topic_that_was_deleted_and_made_again_begins_empty_after_a_crash_between(
    data: Path, tmp_path: Path, is_clean: bool
) -> None:
    """The metadata is durable, the old directory was not renamed yet."""
    path = copied(data, tmp_path / "copy")
    broker = MemoryBroker(path)
    client = broker.client()
    response = client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    assert response.responses[0].error_code == 0
    broker.create_topic("t")
    append(broker, "t", b"new")
    broker.close()
    shutil.rmtree(path / "t-0")
    shutil.copytree(data / "t-0", path / "t-0")
    for name in (layout.RECOVERY_POINT_CHECKPOINT, layout.REPLICATION_CHECKPOINT):
        shutil.copy(data / name, path / name)
    if not is_clean:
        (path / layout.CLEAN_SHUTDOWN).unlink()
    assert Outcome(path).values == {"t": [], "u": VALUES}
    assert len(list(path.glob("t-0.*-stray"))) == 1
    assert Outcome(path).values == {"t": [], "u": VALUES}


def _make_file(path: Path) -> None:
    path.write_bytes(b"no directory")


def _make_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _make_linked(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


@for_each("make", [_make_file, _make_link, _make_linked, Path.mkdir])
@for_each("name", ["v-0", "t-1", "a-b", "-0", "t-00"])
def test_what_is_named_like_a_partition_by_accident_is_no_reason_to_stop(
    data: Path, tmp_path: Path, make, name
) -> None:
    path = copied(data, tmp_path / "copy")
    make(path / name)
    is_found(path)
    assert Outcome(path).values == COMPLETE
    assert Outcome(path).values == COMPLETE


@for_each("make", [_make_file, _make_link, _make_linked, Path.mkdir])
def test_something_else_in_the_place_of_a_partition_keeps_it_offline(data: Path, tmp_path: Path, make) -> None:
    path = copied(data, tmp_path / "copy")
    shutil.rmtree(path / "t-0")
    make(path / "t-0")
    assert is_found(path)
    for _ in range(2):
        assert Outcome(path).values == {"t": None, "u": VALUES}


def test_a_directory_of_somebody_else_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It was set aside as a stray. A partition that needs its name is offline, now and after the next start."""
    file = tmp_path / "broker-1" / "cat.jpg"
    file.parent.mkdir()
    file.write_text("a cat")
    broker = MemoryBroker(tmp_path)
    assert "broker-1 has a partition's name, but no file of one that can be read: it is left as it is" in caplog.text
    broker.create_topic("broker", partitions=2)
    append(broker, "broker", b"v")
    for _ in range(2):
        assert broker.broker.partitions.find("broker", 0) is not None
        assert broker.broker.partitions.find("broker", 1) is None
        assert "move it away, and start again" in broker.broker.partitions.offline["broker", 1]
        assert [path.name for path in file.parent.iterdir()] == ["cat.jpg"]
        broker.close()
        broker = MemoryBroker(tmp_path)
    broker.close()
    file.parent.rename(tmp_path / "cats")
    broker = MemoryBroker(tmp_path)
    assert broker.broker.partitions.find("broker", 1) is not None
    broker.close()
