"""The TOML file of a job: every key is documented, and the first mistake is one sentence with its place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from barnabas.spark.errors import MistakeError
from barnabas.spark.jobs import NAMES, find_job
from barnabas.spark.settings.config import read_config
from tests.support.cases import for_each

ETL = """
checkpoint = "c"
[source]
topic = "in"
[schema]
fields = "id BIGINT"
[output]
path = "out"
[dead_letters]
topic = "dead"
"""


def tables(kind, seen=None):
    """A job's file and every table in it."""
    from barnabas.spark.settings.config import _tables_of

    seen = {} if seen is None else seen
    seen[kind] = None
    for field in kind.model_fields.values():
        for inner in _tables_of(field.annotation):
            tables(inner, seen)
    return list(seen)


def read(tmp_path, text, job="etl"):
    path = tmp_path / "job.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(path, find_job(job).config)


@for_each("job", NAMES)
def test_every_key_is_documented_and_unknown_keys_are_refused(job):
    for table in tables(find_job(job).config):
        assert issubclass(table, BaseModel)
        assert table.__doc__
        assert table.model_config["extra"] == "forbid"
        for name, field in table.model_fields.items():
            assert field.description, f"{table.__name__}.{name}"
            assert field.description.rstrip("`").endswith((".", "`", ";")) or ":" in field.description


def test_a_complete_file(tmp_path):
    config = read(tmp_path, ETL + '[spark.settings]\n"spark.driver.memory" = "4g"\n[columns]\nday = "to_date(at)"\n')
    assert (config.checkpoint, config.source.topics, config.output.path) == ("c", ["in"], "out")
    assert config.spark.settings == {"spark.driver.memory": "4g"}
    assert config.columns == {"day": "to_date(at)"}


@for_each(
    ("value", "start"),
    [
        ('"earliest"', "earliest"),
        ('"latest"', "latest"),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ('"2026-01-31T13:00:00+01:00"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ('{in = {"0" = 12, "1" = 0}}', {"in": {0: 12, 1: 0}}),
    ],
)
def test_start_positions(tmp_path, value, start):
    config = read(tmp_path, ETL.replace('topic = "in"', f'topic = "in"\nstart = {value}'))
    assert config.source.start == start


def source(line):
    return ETL.replace('topic = "in"', line, 1)


@for_each(
    ("text", "message"),
    [
        (ETL.replace("fields", "felds"), "[schema] has no key felds; did you mean fields?; there are format, fields,"),
        (ETL.replace("[output]", "[outptu]"), "there is no key or table outptu; did you mean output?; there are name,"),
        (ETL.replace('[output]\npath = "out"', ""), "the table [output] is missing: the Parquet files"),
        (ETL + "[colums]\n", "there is no key or table colums; did you mean columns?; there are name, checkpoint,"),
        ("checkpont = 'c'" + ETL, "there is no key or table checkpont; did you mean checkpoint?"),
        (source(""), "[source] needs either topic or pattern"),
        (source('topic = "in"\npattern = "i.*"'), "[source] needs either topic or pattern"),
        (source("topic = 5"), "[source] topic: it should be a name, or a list of names, not 5"),
        (source('topic = "in"\nmax_records_per_batch = 0'), "[source] max_records_per_batch: input should be greater"),
        (
            source('topic = "in"\nfail_on_data_loss = "maybe"'),
            "[source] fail_on_data_loss: input should be a valid boo",
        ),
        (
            source('topic = "in"\nstart = "yesterday"'),
            "[source] start: it should be earliest, latest, a time like 2026",
        ),
        (source('topic = "in"\nstart = 5'), "[source] start: it should be earliest, latest, a time"),
        (source('topic = "in"\nstart = {in = 5}'), "[source] start: it should be earliest, latest, a time"),
        (ETL.replace('[source]\ntopic = "in"', ""), "the table [source] is missing: the topic with the records"),
        (source('topic = "in"\nstart = "5"'), "[source] start: it should be earliest, latest, a time"),
        (ETL.replace('fields = "id BIGINT"', ""), "[schema] needs fields, the columns of a JSON value"),
        (ETL.replace('fields = "id BIGINT"', 'format = "avro"'), "[schema] needs avro_schema"),
        (ETL.replace('fields = "id BIGINT"', 'format = "xml"'), "[schema] format: input should be 'json' or 'avro'"),
        (ETL.replace('fields = "id BIGINT"', 'fields = "x"\nrules = "a"'), "[schema] rules: input should be a valid"),
        (ETL.replace('fields = "id BIGINT"', 'fields = "x"\nrules = [5]'), "[schema] rules: input should be a valid"),
        (ETL.replace('path = "out"', ""), "[output] path is missing: the directory, or a URL that Spark can write to"),
        (ETL + "[columns]\nday = 5\n", "[columns] day: input should be a valid string, not 5"),
        (ETL + '[spark.settings]\n"a.b" = [1]\n', "[spark.settings] a.b: "),
        ("source = 5", "source is a table, [source], not 5"),
        ("", "the table [source] is missing"),
        ("x", "is not TOML: "),
        (ETL + "[source]\n", "is not TOML: "),
        (b"\xff\xfe", "is not TOML: "),
    ],
)
def test_the_first_mistake_is_one_sentence_with_its_place(tmp_path, text, message):
    with pytest.raises(MistakeError) as caught:
        read(tmp_path, text)
    sentence = str(caught.value)
    assert sentence.startswith(str(tmp_path / "job.toml"))
    assert message in sentence
    assert "\n" not in sentence
    assert "pydantic" not in sentence
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_file_that_cannot_be_read(tmp_path, name):
    with pytest.raises(MistakeError, match=r"cannot be read: (No such file|Is a directory)"):
        read_config(tmp_path / name, find_job("etl").config)


SOURCE = "[source]\ntopic = 'in'\n"
DEAD = "[dead_letters]\ntopic = 'dead'\n"
OUTPUT = "[output]\ntopic = 'out'\n"
REST = {
    "logs": f"{SOURCE}|{OUTPUT}|{DEAD}|[alerts]\ntopic = 'alerts'\n",
    "copy": SOURCE,
    "events": f"{SOURCE}|{OUTPUT}|{DEAD}|[schema]\nfields = 'a INT'\n",
    "archive": SOURCE,
}
"""What else the files of these jobs must have."""


@for_each(
    ("job", "text", "message"),
    [
        ("logs", "[lines]\nformat = 'pattern'\npattern = '(?<time>.)'\n", "[lines] needs a pattern with the group"),
        ("logs", "[lines]\npattern = '(?<time>.)(?<service>.)'\n", "[lines] has a pattern, which needs format"),
        ("logs", "[alerts]\ntopic = 'a'\nerror_rate = 5\n", "[alerts] error_rate: input should be less than or equal"),
        ("copy", "[target]\ntopic = 'a'\n[transform]\ncolumns = {offset = '1'}\n", "[transform] can change key, value"),
        ("copy", "[target]\ntopic = 'a'\ndelivery = 'exactly'\n", "[target] delivery: input should be 'at_least_once'"),
        ("events", "[state]\nkey = 'a'\n", "[state] needs either fields or function"),
        ("events", "[state]\nkey = 'a'\nfunction = 'a:b'\nfields = {a = 'b'}\n", "[state] needs either fields or func"),
        ("restore", "[archive]\npath = 'x'\n", "[archive] topic is missing: the topic's name in the archive"),
        ("archive", "", "the table [archive] is missing: the archive"),
    ],
)  # fmt: skip
def test_mistakes_in_the_files_of_other_jobs(tmp_path, job, text, message):
    rest = REST.get(job, "")
    with pytest.raises(MistakeError) as caught:
        read(tmp_path, "".join(table for table in rest.split("|") if table.split("\n")[0] not in text) + text, job)
    assert message in str(caught.value)


def test_an_unknown_job():
    with pytest.raises(MistakeError, match=r"there is no job elt; did you mean etl\?; the jobs are etl, analytics"):
        find_job("elt")
