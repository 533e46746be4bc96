"""`barnabas wire`: hex to JSON, JSON to hex, and files of vectors."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from barnabas.cli.files.wire import wire
from tests.support.cases import for_each
from tests.support.requests.recorded import vectors


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(wire, list(arguments), input=stdin)


def test_decode_and_encode_are_inverse() -> None:
    for vector in vectors()[::97]:
        name, version = vector.message_class.__name__, str(vector.version)
        decoded = run("decode", name, version, stdin=vector.data.hex())
        assert (decoded.exit_code, decoded.stderr) == (0, "")
        encoded = run("encode", name, version, stdin=decoded.stdout)
        assert (encoded.exit_code, encoded.stdout) == (0, vector.data.hex() + "\n")


def test_argument_or_stdin_with_spaces_and_kafkas_suffix() -> None:
    value = {"correlationId": 258}
    for result in (
        run("decode", "ResponseHeader", "0", "00000102"),
        run("decode", "ResponseHeader", "0", stdin="00 00\n01 02\n"),
        run("decode", "ResponseHeader", "0", "-", stdin="00000102"),
        run("decode", "ResponseHeaderData", "0", "--indent", "2", "00000102"),
    ):
        assert json.loads(result.stdout) == value
    assert run("encode", "ResponseHeader", "0", '{"correlationId": 258}').stdout == "00000102\n"


@for_each(
    ("arguments", "error", "code"),
    [
        (("decode", "ResponseHeader", "0", "0000"), "truncated", 1),
        (("decode", "ResponseHeader", "0", "0000000000"), "1 bytes after the end", 1),
        (("decode", "ResponseHeader", "0", "xyz"), "not hex", 1),
        (("decode", "ResponseHeader", "7", "00"), "does not have version 7", 1),
        (("decode", "ResponsHeader", "0", "00"), "did you mean ResponseHeader", 2),
        (("decode", "StopReplicaRequest", "0", ""), "has no version", 1),
        (("encode", "ResponseHeader", "0", "{"), "not JSON", 1),
        (("encode", "ResponseHeader", "0", "{}"), "correlationId is missing", 1),
        (("encode", "ResponseHeader", "0", '{"correlationId": 2147483648}'), "cannot be encoded", 1),
        (("encode", "ResponseHeader", "0", "[]"), "expected an object", 1),
    ],
)
def test_error_is_one_line_on_stderr(arguments: tuple[str, ...], error: str, code: int) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert error in result.stderr
    assert "Traceback" not in result.output


def test_check_counts_differing_vectors(tmp_path: Path) -> None:
    lines = [vector.line for vector in vectors()[:40]]
    path = tmp_path / "vectors.jsonl"
    path.write_text("\n".join(lines) + "\n\n")
    good = run("check", "--jsonl", str(path))
    assert (good.exit_code, good.stdout) == (0, "0 differ\n")

    row = json.loads(lines[7])
    lines[7] = json.dumps({**row, "hex": row["hex"] + "00"})
    lines[9] = "not a vector"
    path.write_text("\n".join(lines))
    bad = run("check", "--jsonl", str(path))
    assert bad.exit_code == 1
    assert bad.stdout.splitlines()[-1] == "2 differ"
    assert [line.split(":")[0] for line in bad.stdout.splitlines()[:-1]] == ["line 8", "line 10"]


def test_check_requires_a_file() -> None:
    assert run("check").exit_code == 2
    assert run("check", "--jsonl", "/nowhere/at/all").exit_code == 2
