"""Typical mistakes on the command line: one sentence on stderr that says what to do, and exit code 2; 3 for a topic
that does not exist.

A missing broker is not a mistake: the job waits for it (`broker_wait_s`), then ends with exit code 1, or 4 if
something accepts connections and does not answer.

None of these gets as far as starting Spark.
"""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas.spark.checkpoint import Checkpoint, Owner
from barnabas.spark.topics.cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]
COPY = """
checkpoint = "{checkpoint}"
[source]
topic = "{topic}"
[target]
topic = "{topic}-copy"
"""
ETL = """
checkpoint = "{checkpoint}"
[source]
topic = "{topic}"
[schema]
fields = "id BIGINT"
[output]
path = "{output}"
[dead_letters]
topic = "{topic}-dead"
"""
RESTORE = """
[archive]
path = "{output}"
topic = "{topic}"
"""


def one_sentence(done, *parts, code=2):
    """The command failed with this code and one line on stderr, which contains all of `parts`."""
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("barnabas pipeline"), line
    assert "Traceback" not in line
    for text in parts:
        assert text in line
    assert done.stdout == ""


@pytest.fixture
def job(tmp_path, topic):
    """`job(text, checkpoint=...)`: write a job's file; returns its name."""

    def write(text, **values):
        names = {"checkpoint": str(tmp_path / "checkpoint"), "output": str(tmp_path / "out"), "topic": topic, **values}
        (tmp_path / "job.toml").write_text(text.format(**names))
        return "job.toml"

    return write


@pytest.fixture
def refused():
    """An address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def silent():
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def fake_java(home, script):
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["elt", "--config", "x"], ["there is no job elt; did you mean etl?; the jobs are etl, analytics, logs"]),
        (["etl"], ["missing option '--config'"]),
        (["etl", "--config", "x"], ["x cannot be read: No such file or directory"]),
        (["copy", "--config", "job.toml", "--once", "--every", "1s"], ["--once and --every exclude each other"]),
        (["copy", "--config", "job.toml", "--every", "soon"], ["--every is a time like 10s, 500ms or 1m, not 'soon'"]),
        (
            ["copy", "--config", "job.toml", "--start", "soon"],
            ["--start is earliest, latest or a time like 2026-01-31"],
        ),
        (
            ["copy", "--config", "job.toml", "--progress", "much"],
            ["'much' is not one of 'auto', 'live', 'text', 'json'"],
        ),
        (
            ["copy", "--config", "job.toml", "-b", "nonsense:abc"],
            ["'nonsense:abc' is not a broker address: write HOST:PORT"],
        ),
        (["copy", "--config", "job.toml", "-b", "localhost"], ["'localhost' is not a broker address: write HOST:PORT"]),
        (["copy", "--config", "job.toml", "--report", "job.toml/x"], ["the report job.toml/x cannot be written"]),
    ],
)
def test_mistakes_of_the_command_line(command, job, arguments, messages):
    job(COPY)
    one_sentence(command("run", *arguments), *messages)


def test_the_program_for_spark_submit_is_pipeline_run(tmp_path):
    submit = ROOT / "barnabas" / "pipeline" / "submit.py"
    done = subprocess.run(
        [sys.executable, submit, "etl", "--config", "x"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    one_sentence(done, "x cannot be read: No such file or directory")


def test_a_mistake_in_the_file_names_the_file_the_table_and_the_key(command, job):
    text = ETL.replace("fields", "felds")
    one_sentence(
        command("run", "etl", "--config", job(text)), "job.toml: [schema] has no key felds; did you mean fields?"
    )


def test_a_misspelt_type_is_found_before_spark_starts(command, job):
    done = command("run", "etl", "--config", job(ETL.replace("id BIGINT", "id BIGNT NOT NULL, n DECIMAL(5, 2)")))
    one_sentence(
        done, "job.toml: [schema] fields: id has the type BIGNT, which Spark SQL does not have; did you mean BIGINT?"
    )


def test_a_missing_broker(command, job, refused):
    done = command("run", "copy", "--config", job(f"broker_wait_s = 0\n{COPY}"), "-b", refused, "--once")
    one_sentence(done, f"no broker answers at {refused}: is it running", "'barnabas serve' starts one", code=1)


def test_a_broker_that_never_answers(command, job, silent):
    done = command("run", "copy", "--config", job(f"broker_wait_s = 0\n{COPY}"), "-b", silent, "--once")
    one_sentence(done, f"{silent} accepts connections and does not answer", code=4)


def test_a_job_waits_for_a_broker_as_long_as_its_file_says(command, job, refused):
    began = time.monotonic()
    done = command("run", "copy", "--config", job(f"broker_wait_s = 7\n{COPY}"), "-b", refused, "--progress", "json")
    assert time.monotonic() - began >= 7
    waiting, sentence = done.stderr.splitlines()
    assert json.loads(waiting) == {"event": "waiting", "bootstrap": refused}
    done.stderr = sentence
    one_sentence(done, f"no broker answers at {refused}, tried for 7 s: is it running", code=1)


def test_a_job_continues_when_its_broker_starts(job, tmp_path, start_broker):
    """The broker is started when the job has reported that it waits; the job then reports that its topic is missing."""
    server = start_broker()
    server.stop()
    command = [sys.executable, "-m", "barnabas", "pipeline", "run", "copy", "-b", server.bootstrap]
    command += ["--once", "--progress", "text", "--config", str(tmp_path / job(COPY, topic="xyz"))]
    waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    with waiting:
        assert waiting.stderr is not None
        try:
            assert waiting.stderr.readline() == f"no broker answers at {server.bootstrap} yet; trying again\n"
            server.start()
            assert f"there is no topic xyz at {server.bootstrap}" in waiting.stderr.read()
        finally:
            waiting.kill()
    assert waiting.returncode == 3


def test_a_missing_topic(command, job, broker, create):
    there = create()
    done = command("run", "copy", "--config", job(COPY, topic="xyz"), "-b", broker.bootstrap)
    one_sentence(done, f"there is no topic xyz at {broker.bootstrap}: create it, or name one of ", code=3)
    done = command("run", "copy", "--config", job(COPY, topic=there[1:]), "-b", broker.bootstrap)
    one_sentence(done, f"there is no topic {there[1:]} at {broker.bootstrap}", "did you mean", there, code=3)


def test_no_checkpoint(command, job, broker, create):
    text = COPY.replace('checkpoint = "{checkpoint}"', "")
    done = command("run", "copy", "--config", job(text, topic=create()), "-b", broker.bootstrap)
    one_sentence(done, 'the job copy has no checkpoint: add checkpoint = "DIRECTORY" to its file')


def test_checkpoints_of_other_jobs(command, job, broker, create, tmp_path):
    topic, where = create(), tmp_path / "checkpoint"

    def run(**values):
        return command("run", "copy", "--config", job(COPY, topic=topic, **values), "-b", broker.bootstrap)

    (tmp_path / "photos" / "2026").mkdir(parents=True)
    one_sentence(run(checkpoint=tmp_path / "photos"), "has other files than a pipeline's checkpoint: name an")
    (tmp_path / "file").touch()
    one_sentence(run(checkpoint=tmp_path / "file"), "file", "directory")
    one_sentence(run(checkpoint=tmp_path / "file" / "below"), "file", "directory")

    ids = Cluster(broker.bootstrap).topic_ids([topic])
    output = f"{topic}-copy"
    for owner, message in (
        (Owner("etl", "etl", topic, "out"), "belongs to the job etl: give this one a checkpoint of its own"),
        (
            Owner("copy", "copy", "other", output),
            f"another source (other before, {topic} now): change it back, or name",
        ),
        (Owner("copy", "copy", topic, "other"), "another output (other before"),
        (
            Owner("copy", "copy", topic, output, {}, {topic: "another-id"}),
            f"topic {topic} was deleted and created again",
        ),
        (Owner("copy", "copy", topic, output, {}, ids), "--start has no effect on a checkpoint that is in use"),
    ):
        where.joinpath("barnabas-job.json").unlink(missing_ok=True)
        for directory in ("offsets", "commits"):
            where.joinpath("copy", directory).mkdir(parents=True, exist_ok=True)
            where.joinpath("copy", directory, "0").write_text('v1\n{}\n{"in": {"0": 1}}')
        where.joinpath("copy", "metadata").write_text("{}")
        where.joinpath("barnabas-job.json").write_text(json.dumps(vars(owner)))
        more = ["--start", "latest"] if owner.topic_ids == ids else []
        done = command("run", "copy", "--config", job(COPY, topic=topic), "-b", broker.bootstrap, *more)
        one_sentence(done, message)
    where.joinpath("barnabas-job.json").write_text("{")
    one_sentence(run(), "cannot be read, so the checkpoint's owner is unknown: name a new checkpoint")


def test_outputs_of_other_checkpoints(command, job, broker, create, tmp_path):
    topic, out = create(), tmp_path / "out"

    def run(**values):
        return command("run", "etl", "--config", job(ETL, topic=topic, **values), "-b", broker.bootstrap)

    (out / "_spark_metadata").mkdir(parents=True)
    one_sentence(
        run(), f"the output {out} holds files that were not written with the checkpoint", "name an empty or new"
    )
    (tmp_path / "file").touch()
    one_sentence(run(output=tmp_path / "file" / "below"), "the output", "cannot be created: Not a directory")
    one_sentence(run(output=tmp_path / "file"), "the output", "cannot be created: File exists")

    owner = Owner("etl", "etl", topic, str(tmp_path / "gone"), {"type of id": "BIGINT", "[output] partition_by": ""})
    Checkpoint(str(tmp_path / "checkpoint")).claim(owner)
    for directory in ("offsets", "commits"):
        tmp_path.joinpath("checkpoint", "parquet", directory).mkdir(parents=True)
        tmp_path.joinpath("checkpoint", "parquet", directory, "0").touch()
    one_sentence(
        run(output=tmp_path / "gone"), "gone is missing, but the checkpoint", "restore it, or name a new check"
    )


def test_a_job_that_would_read_its_own_output(command, job, broker, create):
    topic = create()
    for name, text in (("copy", COPY.replace("-copy", "")), ("etl", ETL.replace("-dead", ""))):
        done = command("run", name, "--config", job(text, topic=topic), "-b", broker.bootstrap)
        one_sentence(done, f"the job {name} would read its own output: {topic} is its source and output")


def test_a_missing_or_wrong_java(command, job, broker, create, tmp_path):
    file = job(COPY, topic=create())

    def run(java_home, path=str(tmp_path)):
        return command(
            "run", "copy", "--config", file, "-b", broker.bootstrap, env={"JAVA_HOME": java_home, "PATH": path}
        )

    for version, reported in ((8, "1.8.0_402"), (11, "11.0.2"), (25, "25")):
        home = fake_java(tmp_path / str(version), f"echo 'openjdk version \"{reported}\"' >&2")
        one_sentence(run(home), f"Spark 4.0 needs Java 17 or 21, and JAVA_HOME ({home}) is Java {version}: set it to")
    one_sentence(
        run(fake_java(tmp_path / "none", "echo garbage")), "which has no working bin/java: set it to a Java 17 or 21"
    )
    one_sentence(run(tmp_path / "nowhere"), "which has no working bin/java")


def test_java_is_checked_before_a_broker_is_waited_for(command, job, refused, tmp_path):
    done = command("run", "copy", "--config", job(COPY), "-b", refused, env={"JAVA_HOME": tmp_path})
    one_sentence(done, f"JAVA_HOME is {tmp_path}, which has no working bin/java")
    done = command("demo", "--report-dir", tmp_path / "report", env={"JAVA_HOME": tmp_path})
    one_sentence(done, f"JAVA_HOME is {tmp_path}, which has no working bin/java")
    assert not (tmp_path / "report").exists()


def test_missing_jars(command, job, broker, create, tmp_path):
    java = fake_java(tmp_path / "java", "echo 'openjdk version \"17\"' >&2")
    mvn = fake_java(tmp_path / "maven", "").joinpath("bin", "java").rename(tmp_path / "maven" / "bin" / "mvn")
    mvn.write_text("#!/bin/sh\necho '[ERROR] Could not transfer artifact: Connection refused'; exit 1\n")
    file, env = job(COPY, topic=create()), {"JAVA_HOME": java, "BARNABAS_SPARK_JARS": None, "XDG_CACHE_HOME": tmp_path}

    done = command("run", "copy", "--config", file, "-b", broker.bootstrap, env={**env, "PATH": f"{mvn.parent}:/bin"})
    first, done.stderr = done.stderr.splitlines()
    assert first == f"downloading Spark's Kafka connector (10 MB, once) with Maven to {tmp_path}/barnabas/spark-4.0.0"
    one_sentence(
        done, "connector cannot be downloaded (is there a network?)", "BARNABAS_SPARK_JARS", "Connection refused"
    )
    env["BARNABAS_SPARK_JARS"] = tmp_path / "nowhere"
    done = command("run", "copy", "--config", file, "-b", broker.bootstrap, env=env)
    one_sentence(
        done, "BARNABAS_SPARK_JARS is", "which has no spark-sql-kafka-0-10 jar: name a directory with the jars"
    )


def test_without_the_extra(command_process, tmp_path):
    """As in an environment without the extra."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pyspark' else find(name, *more)\n"
    )
    done = command_process("list", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    one_sentence(done, "needs pyspark: in a clone of Barnabas run pip install '.[spark]' (from an index: pip install")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "status needs --config FILE or --checkpoint DIR"),
        (["--config", "none.toml"], "none.toml cannot be read: No such file or directory"),
        (["--config", "job.toml"], "job.toml has no checkpoint"),
        (["--checkpoint", "none"], "none is not a pipeline's checkpoint: has the job run once?"),
        (["--checkpoint", "job.toml"], "job.toml cannot be used as a checkpoint directory"),
        (["--checkpoint", "begun"], "the job copy has not started: its checkpoint begun has no batch"),
    ],
)
def test_status_without_a_checkpoint(command, tmp_path, arguments, message):
    (tmp_path / "job.toml").write_text("[source]\n")
    Checkpoint(str(tmp_path / "begun")).claim(Owner("copy", "copy", "in", "out"))
    one_sentence(command("status", *arguments), message)


def test_start_of_a_job_that_reads_no_topic(command, job):
    done = command("run", "restore", "--config", job(RESTORE), "--start", "latest")
    one_sentence(done, "--start is for jobs that read a topic")
