"""The checkpoint of a job: its owner, and its progress from Spark's files, complete or torn."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from barnabas.spark.checkpoint import FILE, NEW_FILE, Checkpoint, Owner
from barnabas.spark.errors import MistakeError
from tests.support.cases import for_each

OWNER = Owner("etl", "orders", "in", "out", {"type of id": "BIGINT"}, {"in": "id-1"})


def spark_files(where, query, done, begun, offsets=None):
    """Write Spark's files: `offsets/N` for each started batch, `commits/N` for each completed one."""
    for directory in ("offsets", "commits"):
        (where / query / directory).mkdir(parents=True)
        (where / query / directory / ".0.crc").touch()
    (where / query / "metadata").write_text('{"id":"a"}')
    for batch in range(begun + 1):
        content = json.dumps({"in": {"0": 10 * (batch + 1), "1": 5}}) if offsets is None else offsets
        (where / query / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{content}')
    for batch in range(done + 1):
        (where / query / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def begun(tmp_path, owner=OWNER):
    where = tmp_path / "c"
    checkpoint = Checkpoint(str(where))
    checkpoint.claim(owner)
    spark_files(where, "parquet", 0, 0)
    return checkpoint


def test_a_new_directory_is_claimed_and_recognized(tmp_path):
    checkpoint = Checkpoint(str(tmp_path / "a" / "b"))
    assert checkpoint.owner() is None
    checkpoint.claim(OWNER)
    assert Checkpoint(str(tmp_path / "a" / "b")).owner() == OWNER
    checkpoint.claim(OWNER)
    assert checkpoint.positions() == []


def test_an_interrupted_claim_is_harmless(tmp_path):
    (tmp_path / NEW_FILE).write_text('{"job": "et')
    Checkpoint(str(tmp_path)).claim(OWNER)
    assert Checkpoint(str(tmp_path)).owner() == OWNER


def test_a_directory_may_have_sparks_log(tmp_path):
    (tmp_path / "spark.log").touch()
    Checkpoint(str(tmp_path)).claim(OWNER)


def test_a_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(MistakeError, match="has other files than a pipeline's checkpoint: name an empty"):
        Checkpoint(str(tmp_path)).claim(OWNER)


@for_each(
    ("owner", "message"),
    [
        (replace(OWNER, job="copy"), "belongs to the job etl job orders: give this one a checkpoint of its own"),
        (replace(OWNER, name="other"), "belongs to the job etl job orders"),
        (replace(OWNER, source="other"), r"made with another source \(in before, other now\): change it back, or name"),
        (replace(OWNER, output="other"), r"made with another output \(out before, other now\)"),
        (replace(OWNER, fields={"type of id": "INT"}), r"another type of id \(BIGINT before, INT now\)"),
        (
            replace(OWNER, topic_ids={"in": "id-2"}),
            "topic in was deleted and created again since .*: name a new checkpoint",
        ),
    ],
)
def test_a_checkpoint_of_another_job_or_other_settings_is_refused(tmp_path, owner, message):
    checkpoint = begun(tmp_path)
    with pytest.raises(MistakeError, match=message):
        checkpoint.claim(owner)
    assert checkpoint.owner() == OWNER


def test_columns_may_be_added_and_removed_but_types_may_not_change(tmp_path):
    checkpoint = begun(tmp_path)
    checkpoint.claim(replace(OWNER, fields={"type of text": "STRING"}))
    assert checkpoint.owner().fields == {"type of id": "BIGINT", "type of text": "STRING"}
    with pytest.raises(MistakeError, match="another type of id"):
        checkpoint.claim(replace(OWNER, fields={"type of id": "INT"}))


def test_topics_may_be_added_and_removed_but_ids_may_not_change(tmp_path):
    checkpoint = begun(tmp_path)
    checkpoint.claim(replace(OWNER, topic_ids={"more": "id-3"}))
    assert checkpoint.owner().topic_ids == {"in": "id-1", "more": "id-3"}
    with pytest.raises(MistakeError, match="topic in was deleted"):
        checkpoint.claim(replace(OWNER, topic_ids={"in": "id-2", "more": "id-3"}))


def test_before_the_first_batch_the_jobs_file_may_change(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.claim(OWNER)
    spark_files(tmp_path, "parquet", -1, -1)
    changed = replace(OWNER, fields={"type of id": "INT"}, topic_ids={"in": "id-2"}, output="other")
    checkpoint.claim(changed)
    assert checkpoint.owner() == changed
    with pytest.raises(MistakeError, match="belongs to the job"):
        checkpoint.claim(replace(OWNER, job="copy"))


def test_positions_are_those_of_the_last_completed_batch(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.claim(OWNER)
    spark_files(tmp_path, "parquet", 10, 11)
    spark_files(tmp_path, "dead-letters", -1, 0)
    spark_files(tmp_path, "new", -1, -1)
    dead, new, parquet = checkpoint.positions()
    assert (dead.query, dead.batch, dead.at, dead.offsets, dead.is_unfinished) == ("dead-letters", -1, None, {}, True)
    assert (new.query, new.batch, new.offsets, new.is_unfinished) == ("new", -1, {}, False)
    assert (parquet.query, parquet.batch, parquet.is_unfinished) == ("parquet", 10, True)
    assert parquet.offsets == {"in": {0: 110, 1: 5}}
    assert parquet.at is not None
    assert (checkpoint.has_begun("dead-letters"), checkpoint.has_begun("new"), checkpoint.has_begun("no")) == (
        True,
        False,
        False,
    )


@for_each("offsets", ["", "{", '{"in": {"0"', "null", "7", '{"logOffset":3}', '{"in": {"0": "x"}}', "-"])
def test_torn_offsets_are_ignored(tmp_path, offsets):
    checkpoint = Checkpoint(str(tmp_path))
    spark_files(tmp_path, "parquet", 0, 0, offsets)
    (position,) = checkpoint.positions()
    assert (position.batch, position.offsets) == (0, {})


def test_missing_files_are_ignored(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    spark_files(tmp_path, "parquet", 0, 0)
    (tmp_path / "parquet" / "offsets" / "0").unlink()
    (position,) = checkpoint.positions()
    assert (position.batch, position.offsets, position.is_unfinished) == (0, {}, False)


@for_each("text", ["", "{", "[]", '{"job": "etl"}', '{"other": 1}', "null"])
def test_an_owner_that_cannot_be_read_is_one_sentence(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(MistakeError, match="cannot be read, so the checkpoint's owner is unknown: name a new"):
        Checkpoint(str(tmp_path)).claim(OWNER)


def test_an_invalid_path_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(MistakeError, match=r"name a directory that|cannot be used as") as caught:
            Checkpoint(str(path)).claim(OWNER)
        assert "\n" not in str(caught.value)
    with pytest.raises(MistakeError, match="the checkpoint nowhere://x cannot be opened"):
        Checkpoint("nowhere://x")


def test_urls_are_paths_too(tmp_path):
    Checkpoint(f"file://{tmp_path}").claim(OWNER)
    assert Checkpoint(str(tmp_path)).owner() == OWNER
    assert Checkpoint(f"file://{tmp_path}").local == tmp_path
    assert Checkpoint(f"file://{tmp_path}/").flow("x") == f"file://{tmp_path}/x"
