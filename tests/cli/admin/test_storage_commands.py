"""`barnabas storage check` and `recover`: damage is found, reported and repaired; nothing else is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli import main
from barnabas.storage import layout
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from tests.support.archives import unpack
from tests.support.logs.log_driver import TOPIC_ID, append, append_marker, batch_of, small_config, values_from

USAGE, DAMAGED = 2, 1
NOW_MS = 1_000_000


class Data:
    """A data directory with two partitions of a topic, each with several segments, stopped cleanly."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._config = small_config(segment_bytes=700)
        dirs = self.start()
        for log in dirs.logs.values():
            for at in range(12):
                count, sequence = at % 3 + 1, log.log_end_offset
                append(
                    log,
                    batch_of([b"%d" % at] * count, producer=(7, 0, sequence), timestamps=[NOW_MS + at] * count),
                    now_ms=NOW_MS,
                )
            append(log, batch_of([b"aborted"], producer=(8, 0, 0), transactional=True))
            append_marker(log, commit=False, producer_id=8)
        self.values = values_from(dirs.logs["t", 0], 0)
        dirs.close()

    def start(self) -> LogDirs:
        """Open the logs as a broker does. Raises DamagedLog."""
        dirs = LogDirs(UnsyncedFiles(), [str(self.path)], lambda: bytes(15) + b"\1")
        dirs.open(1)
        try:
            for partition in (0, 1):
                dirs.open_log("t", partition, self._config, topic_id=TOPIC_ID, now_ms=10_000, now=0.0)
        except BaseException:
            dirs.release()
            raise
        return dirs

    def files(self) -> dict[str, bytes]:
        """The contents of all files in the directory."""
        return {str(path.relative_to(self.path)): path.read_bytes() for path in self.path.rglob("*") if path.is_file()}

    def segment(self, at: int, kind: str = ".log") -> Path:
        """The path of a file of a segment of t-0."""
        bases = sorted(self.path.glob("t-0/*.log"))
        return bases[at].with_suffix(kind)

    def flip(self, path: Path, at: int) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path / "data")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, stdout and stderr of `barnabas storage ...`."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = main(["storage", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


Run = Callable[..., tuple[int, str, str]]


def opened(data: Data) -> Log:
    """The first partition's log after a start and a stop."""
    dirs = data.start()
    dirs.close()
    return dirs.logs["t", 0]


def test_whole_directory_is_found_whole_and_left_alone(data: Data, run: Run) -> None:
    before = data.files()
    code, out, err = run("check", data.path)
    assert (code, err) == (0, "")
    head, titles, *rows = out.splitlines()
    assert head == f"{data.path} (after a clean stop)"
    assert titles.split() == [
        "TOPIC",
        "PARTITION",
        "SEGMENTS",
        "BATCHES",
        "BYTES",
        "START-OFFSET",
        "END-OFFSET",
        "STATE",
    ]
    assert [row.split()[0:2] + row.split()[-3:] for row in rows] == [
        ["t", str(partition), "0", "26", "ok"] for partition in (0, 1)
    ]
    assert data.files() == before


def test_json_says_the_same(data: Data, run: Run) -> None:
    data.flip(data.segment(1), 70)
    code, out, _ = run("check", data.path, "-o", "json")
    (report,) = json.loads(out)
    assert code == DAMAGED
    assert (report["path"], report["clean_stop"], report["damaged"]) == (str(data.path), True, True)
    assert [partition["state"] for partition in report["partitions"]] == ["damaged", "ok"]
    finding = report["partitions"][0]["findings"][0]
    assert (finding["kind"], finding["path"]) == ("damage", str(data.segment(1)))


def cut_off_a_byte(data: Data) -> Path:
    path = data.segment(-1)
    path.write_bytes(path.read_bytes()[:-1])
    return path


def change_a_record(data: Data) -> Path:
    data.flip(data.segment(1), 70)
    return data.segment(1)


def lose_a_segment(data: Data) -> Path:
    data.segment(1).unlink()
    return data.segment(0).parent


def spoil_offset_index(data: Data) -> Path:
    data.flip(data.segment(0, ".index"), 7)
    return data.segment(0, ".index")


def spoil_time_index(data: Data) -> Path:
    data.flip(data.segment(0, ".timeindex"), 7)
    return data.segment(0, ".timeindex")


def shorten_time_index(data: Data) -> Path:
    path = data.segment(0, ".timeindex")
    path.write_bytes(path.read_bytes()[:-12])
    return path


def forget_aborted(data: Data) -> Path:
    data.segment(-1, ".txnindex").unlink()
    return data.segment(-1, ".txnindex")


def spoil_epochs(data: Data) -> Path:
    path = data.path / "t-0" / layout.LEADER_EPOCH_CHECKPOINT
    path.write_text("one\n")
    return path


def swap_snapshots(data: Data) -> Path:
    first, *_, last = sorted(data.path.glob("t-0/*.snapshot"))
    first.write_bytes(last.read_bytes())
    return first


def lose_the_partition(data: Data) -> Path:
    shutil.rmtree(data.path / "t-0")
    return data.path / "t-0"


DAMAGES = [
    cut_off_a_byte,
    change_a_record,
    lose_a_segment,
    spoil_offset_index,
    spoil_time_index,
    shorten_time_index,
    forget_aborted,
    spoil_epochs,
    swap_snapshots,
    lose_the_partition,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_kind_of_damage_is_found_where_it_is_and_can_be_repaired(
    data: Data, run: Run, damage: Callable[[Data], Path]
) -> None:
    """L2: after the repair every intact batch is at its offset, and a check reports nothing."""
    path = damage(data)
    before = data.files()
    code, out, _ = run("check", data.path)
    assert code == DAMAGED
    assert any(line.startswith(f"damage: {path}") for line in out.splitlines()), out
    assert "t             1" in out or " ok" in out
    code, report, _ = run("recover", data.path, "--dry-run")
    assert code == DAMAGED
    assert data.files() == before, "neither has changed anything"
    code, out, _ = run("recover", data.path, "-y")
    assert (code, out) == (0, f"{report}t-0: repaired\n")
    code, out, _ = run("check", data.path)
    assert (code, [line for line in out.splitlines() if line.startswith("damage")]) == (0, [])
    log = opened(data)
    assert log.log_end_offset == 26, "no offset is given out twice"
    remaining = values_from(log, log.log_start_offset)
    assert set(remaining) <= set(data.values)
    lost = {offset for offset, _ in data.values} - {offset for offset, _ in remaining}
    assert all(f"from offset {first}" in report for first in lost if first - 1 not in lost), report
    assert bool(lost) == (damage in (cut_off_a_byte, change_a_record, lose_a_segment, lose_the_partition))


def test_damaged_bytes_are_put_aside(data: Data, run: Run) -> None:
    whole = data.segment(1).read_bytes()
    data.flip(data.segment(1), 70)
    bad = data.segment(1).read_bytes()
    code, out, _ = run("recover", data.path, "-y")
    assert code == 0
    aside = Path(f"{data.segment(1)}.damaged")
    size = aside.stat().st_size
    assert aside.read_bytes() == bad[:size]
    assert f"{size} corrupt bytes are moved aside" in out
    assert data.segment(1).read_bytes().endswith(whole[size:])
    code, out, _ = run("check", data.path)
    assert f"notice: {aside}: kept from an earlier recovery" in out


def test_aborted_transactions_and_producers_survive_a_repair(data: Data, run: Run) -> None:
    """T6, I5: rebuilt files have the same contents."""
    before = opened(data)
    forget_aborted(data)
    assert run("recover", data.path, "-y")[0] == 0
    after = opened(data)
    assert after.aborted_transactions(0, 26) == before.aborted_transactions(0, 26) != []
    assert after.producers.producers[7].batches[-1] == before.producers.producers[7].batches[-1]


def test_damaged_partition_stays_closed_until_it_is_repaired(data: Data, run: Run) -> None:
    cut_off_a_byte(data)
    with pytest.raises(DamagedLog):
        data.start()
    assert run("recover", data.path, "--topic", "t", "--partition", "0", "-y")[0] == 0
    data.start().close()


def test_torn_tail_is_no_damage(data: Data, run: Run) -> None:
    """The next start truncates it."""
    dirs = data.start()
    append(dirs.logs["t", 0], batch_of([b"torn"]))
    dirs.release()
    path = data.segment(-1)
    path.write_bytes(path.read_bytes()[:-1])
    code, out, _ = run("check", data.path)
    assert code == 0
    assert "(after an unclean stop)" in out
    assert f"notice: {path}: " in out
    assert "a torn write, which the next start truncates" in out
    assert run("recover", data.path) == (0, f"{data.path}: no damage\n", "")
    data.start().close()
    assert "notice" not in run("check", data.path)[1]


def test_running_broker_is_left_alone(data: Data, run: Run) -> None:
    dirs = data.start()
    code, _, err = run("check", data.path)
    assert (code, err) == (
        0,
        f"barnabas storage check: a broker is using {data.path}; data that is being written may look torn\n",
    )
    before = data.files()
    code, _, err = run("recover", data.path)
    assert code == USAGE
    assert err.startswith(f"barnabas storage recover: a broker is using {data.path}: stop it first")
    assert data.files() == before
    dirs.close()


@pytest.mark.parametrize("name", [layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT])
def test_unreadable_checkpoint_is_put_aside(data: Data, run: Run, name: str) -> None:
    path = data.path / name
    path.write_text("garbage\n")
    code, out, _ = run("check", data.path)
    assert (code, f"damage: {path}: it cannot be read" in out) == (DAMAGED, True)
    assert run("recover", data.path, "--dry-run")[0] == DAMAGED
    assert path.read_text() == "garbage\n"
    code, out, _ = run("recover", data.path, "-y")
    assert code == 0
    assert Path(f"{path}.damaged").read_text() == "garbage\n"
    assert values_from(opened(data), 0) == data.values


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "."], "is not a data directory"),
        (["check", "/no/such/place"], "does not exist"),
        (["recover", "DATA", "--partition", "0"], "--partition needs --topic"),
        (["recover", "DATA", "--topic", "u"], "there is no partition of u in"),
        (["recover", "DATA", "--topic", "t", "--partition", "5"], "there is no partition of t-5 in"),
    ],
)
def test_mistakes_are_one_sentence(
    data: Data, run: Run, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*[str(data.path) if argument == "DATA" else argument for argument in arguments])
    assert (code, out) == (USAGE, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_directory_of_somebody_else_is_no_partition(data: Data, run: Run) -> None:
    """It was checked and repaired as one, or as a partition that is missing."""
    file = data.path / "photos-2024" / "cat.jpg"
    file.parent.mkdir()
    file.write_text("a cat")
    code, out, _ = run("check", data.path)
    assert code == 0
    assert f"notice: {file.parent}: it has a partition's name, but no file of one" in out
    before = data.files()
    code, out, _ = run("recover", data.path, "-y")
    assert code == 0
    assert data.files() == before


def test_the_directory_of_a_cluster_is_one_sentence(data: Data, run: Run) -> None:
    cluster = data.path.parent / "cluster"
    cluster.mkdir()
    data.path.rename(cluster / "broker-1")
    code, out, err = run("check", cluster)
    assert (code, out) == (USAGE, "")
    assert f"{cluster} has the data of a cluster: name the directory of one of its nodes" in err
    assert run("check", cluster / "broker-1")[0] == 0


def test_directory_that_kafka_has_left_is_found_whole(tmp_path: Path, run: Run) -> None:
    """Its indexes, snapshots and checkpoints, transactions and a compacted topic among them."""
    archive = Path(__file__).parents[2] / "data" / "kafka-4.4.0-directory.tar.gz"
    unpack(archive, tmp_path / "kafka")
    code, out, _ = run("check", tmp_path / "kafka")
    assert code == 0
    assert "damage" not in out
    assert [row.split()[-1] for row in out.splitlines()[2:]] == ["ok"] * 6
