"""`barnabas cat` beside the real kcat: the same commands give the same output, notes about ends included."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.cases import for_each
from tests.support.processes.commands import KCAT, run_command

needs_kcat = pytest.mark.skipif(KCAT is None, reason="needs kcat (on Debian: apt-get install kcat)")


def _kcat(broker, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    assert KCAT is not None
    return subprocess.run(
        [KCAT, "-b", broker.bootstrap, *arguments], input=stdin, capture_output=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def filled(broker) -> str:
    """Two partitions with keys, headers, nulls, empty values and bytes that are not printable."""
    name = f"cat-{os.getpid()}"
    run_command("topic", "create", name, "-p", "2", bootstrap=broker.bootstrap).ok()
    lines = 'k1:v1\nk2:v2\n:empty\nnodelim\n\nü:\x01\x7f"/\\\nk3:\n'.encode() + b"bytes:\xff\n"
    options = ("cat", "-P", "-t", name, "-K:", "-H", "a=1", "-H", "b", "-H", "c=")
    run_command(*options, stdin=lines, bootstrap=broker.bootstrap).ok()
    run_command("cat", "-P", "-t", name, "-Z", "-K:", stdin="tomb:\n", bootstrap=broker.bootstrap).ok()
    return name


def _messages(stdout: bytes) -> list[bytes]:
    """The messages that were printed, in an order that does not depend on which partition was read first."""
    return sorted(re.split(rb"[#\n]", stdout))


def _notes(stderr: bytes) -> list[str]:
    """The lines on stderr, in an order that does not depend on which partition ended first."""
    lines = [re.sub(r"memberid [^)]*", "memberid M", line) for line in stderr.decode().split("\n")]
    return sorted(line.removesuffix(": exiting") for line in lines)


@needs_kcat
@for_each(
    "options",
    [
        ("-C", "-e"),
        ("-C", "-e", "-J"),
        ("-C", "-e", "-K", "|"),
        ("-C", "-e", "-Z", "-f", r"%t %p %o %k %K %s %S %R %T %h\n"),
        ("-C", "-e", "-Z", "-K,", "-D", "#", "-q"),
        ("-C", "-o", "-1", "-e"),
        ("-C", "-o", "2", "-e", "-p", "1"),
        ("-C", "-o", "s@0", "-e"),
        ("-C", "-o", "e@5"),
        ("-C", "-o", "end", "-e"),
        ("-C", "-c", "2", "-p", "1", "-u"),
        ("-C", "-s", "key=c", "-s", "value=s", "-e", "-p", "1", "-K:"),
        ("-L",),
        ("-L", "-J"),
    ],
    ids=" ".join,
)
def test_same_output_as_kcat(call, broker, filled, options: tuple[str, ...]) -> None:
    theirs = _kcat(broker, "-t", filled, *options)
    ours = call("cat", "-t", filled, *options)
    assert ours.code == theirs.returncode == 0, (ours.stderr, theirs.stderr)
    assert _messages(ours.stdout_bytes) == _messages(theirs.stdout)
    assert _notes(ours.stderr.encode()) == _notes(theirs.stderr)


@needs_kcat
def test_same_offsets_as_kcat(call, broker, filled) -> None:
    queries = [text for index in (0, 1) for text in ("-t", f"{filled}:{index}:-1")]
    for options in (queries, [*queries, "-J"], ["-t", f"{filled}:0:99999999999999"], ["-t", f"{filled}:1:0"]):
        assert call("cat", "-Q", *options).ok().stdout == _kcat(broker, "-Q", *options).stdout.decode()


@needs_kcat
def test_same_group_as_kcat(call, broker, filled) -> None:
    for number, options in enumerate([("-X", "auto.offset.reset=earliest"), (), ("-o", "beginning")]):
        theirs = _kcat(broker, "-G", f"{filled}-theirs-{number}", "-e", *options, filled)
        ours = call("cat", "-G", f"{filled}-ours-{number}", "-e", *options, filled)
        assert ours.code == theirs.returncode == 0, ours.stderr
        assert _messages(ours.stdout_bytes) == _messages(theirs.stdout)
        assert _notes(ours.stderr.replace("-ours-", "-theirs-").encode()) == _notes(theirs.stderr)


def test_an_offset_of_a_group_is_stronger_than_what_is_committed(call, filled) -> None:
    options = ("cat", "-G", f"{filled}-again", "-o", "beginning", "-e", "-q", filled)
    assert call(*options).ok().lines == call(*options).ok().lines != []


@needs_kcat
@pytest.mark.parametrize(
    "options",
    [
        ("-K:",),
        ("-K:", "-Z", "-k", "fixed", "-H", "x=1", "-H", "y"),
        ("-D", ":", "-c", "3", "-T"),
        ("-p", "2", "-z", "lz4"),
        ("-l", "FILE", "-K:"),
        ("FILE", "FILE"),
        ("-X", "partitioner=murmur2", "-K:"),
        ("-X", "transactional.id=ID", "-X", "acks=all"),
    ],
    ids=" ".join,
)
def test_same_messages_as_kcat(call, broker, topic_name, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Keys, values, headers and, for messages with a key or -p, partitions."""
    content = b"a:1\nb:2\n\nc:\n:d\nlast\r\nx:y:z"
    (tmp_path / "file").write_bytes(content)
    outputs = []
    programs = [lambda *words: call("cat", *words, stdin=content), lambda *words: _kcat(broker, *words, stdin=content)]
    for number, produce in enumerate(programs):
        name = topic_name(f"same-{number}")
        call("topic", "create", name, "-p", "4").ok()
        arguments = [
            str(tmp_path / "file") if option == "FILE" else option.replace("=ID", f"={name}") for option in options
        ]
        done = produce("-P", "-t", name, *arguments)
        assert getattr(done, "code", 0) == getattr(done, "returncode", 0) == 0, done.stderr
        records = map(json.loads, call("consume", name, "-e", "--json").ok().lines)
        keyed = "-p" in options
        messages = [
            (
                record.get("key"),
                record.get("value"),
                record.get("headers"),
                record["partition"] if keyed or record["key"] else None,
            )
            for record in records
        ]
        outputs.append((sorted(map(str, messages)), getattr(done, "stdout_bytes", done.stdout)))
    assert outputs[0][0] == outputs[1][0]
    assert (outputs[0][1] or b"") == (outputs[1][1] or b""), "what -T prints"


@for_each(
    ("options", "said"),
    [
        (["-C", "-P"], "only one of"),
        (["-C"], "-t TOPIC is missing"),
        (["-G", "g"], "needs the names of topics"),
        (["-C", "-t", "t", "-E"], "-E is not served"),
        (["-C", "-t", "t", "-r", "http://x"], "there is no schema registry"),
        (["-C", "-t", "t", "-X", "foo=1"], "the property 'foo' is not served"),
        (["-C", "-t", "t", "-X", "client.di=1"], "did you mean client.id?"),
        (["-C", "-t", "t", "-o", "stored"], "offsets are those of a group"),
        (["-C", "-t", "t", "-s", "z"], "the pack string 'z' has 'z'"),
        (["-P", "-t", "t", "-z", "rar"], "must be none, gzip"),
        (["-P", "-t", "t", "/nonexistent"], "no such file"),
        (["-Q", "-t", "t:0"], "must be TOPIC:PARTITION:TIMESTAMP"),
    ],
)
def test_wrong_use_is_one_sentence(call, options: list[str], said: str) -> None:
    ran = call("cat", *options)
    assert ran.code == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_not_found(call, filled) -> None:
    assert call("cat", "-C", "-t", f"{filled}-not", "-e").code == 3
    assert call("cat", "-C", "-t", filled, "-p", "7", "-e").code == 3


def test_properties_of_a_file(call, filled, tmp_path: Path) -> None:
    (tmp_path / "kcat.conf").write_text("# a comment\nisolation.level = read_uncommitted\n\nclient.id=me\n")
    assert call("cat", "-F", str(tmp_path / "kcat.conf"), "-C", "-t", filled, "-e", "-q").ok().lines
    assert "transactional.id" in call("cat", "-X", "list").ok().stdout


def test_values_that_do_not_fit_their_pack_string(call, filled) -> None:
    ran = call("cat", "-C", "-t", filled, "-e", "-q", "-s", "value=q")
    assert ran.code == 1
    assert "q needs 8 bytes" in ran.stderr
