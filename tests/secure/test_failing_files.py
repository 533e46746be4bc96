"""Each operation on the files of `--secure` and of `barnabas cert` fails once: a sentence, and existing files stay."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from barnabas.cli.app import run as run_command
from barnabas.tools.secure.authority import certificates_in
from barnabas.tools.secure.errors import SecureError
from barnabas.tools.secure.folder import SecureFolder
from barnabas.tools.secure.start import prepare
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each
from tests.support.disks.failing_calls import FailingCalls

Act = Callable[[SecureFolder], object]
ADDRESS = "localhost:9092"


def start(folder: SecureFolder) -> None:
    """All that a start does with the files."""
    prepare(folder, ["localhost"], {"alice": "secret"}).tell("Clients", ADDRESS)


def new_address(folder: SecureFolder) -> None:
    prepare(folder, ["localhost", "other"], {}).tell("Clients", "other:9092")


ACTS: list[tuple[Act, bool]] = [
    (start, False),
    (start, True),
    (new_address, True),
    (SecureFolder.renew, True),
    (lambda folder: folder.client("app"), True),
    (SecureFolder.certificates, True),
]
"""The operation, and whether the files exist before it."""


def contents(folder: SecureFolder) -> dict[str, bytes]:
    if not folder.path.exists():
        return {}
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


def check_whole(folder: SecureFolder) -> None:
    """No file is half written, none can be read by others, and nothing temporary is left."""
    for path in folder.path.iterdir() if folder.path.exists() else ():
        assert not path.name.startswith("."), f"{path.name} was left behind"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if path.name == "ca.key":
            load_pem_private_key(path.read_bytes(), None)
        elif path.suffix == ".pem":
            assert certificates_in(path.read_bytes(), path.name)
            if path.name != "ca.pem":
                load_pem_private_key(path.read_bytes(), None)
        else:
            assert path.read_text().endswith("\n")


@for_each("code", [errno.EIO, errno.ENOSPC, errno.EMFILE])
@for_each(("act", "is_there"), ACTS)
def test_any_operation_may_fail(tmp_path: Path, act: Act, is_there: bool, code: int) -> None:
    number = 0
    while True:
        number += 1
        folder = SecureFolder(str(tmp_path / str(number) / "data"))
        folder.path.parent.mkdir()
        if is_there:
            start(folder)
        before = contents(folder)
        with FailingCalls(folder.path.parent, number, code) as files:
            try:
                act(folder)
                failure = ""
            except (SecureError, ConfigError) as error:
                failure = str(error)
        if not files.has_failed:
            assert failure == ""
            break
        check_whole(folder)
        if failure:
            assert "Cannot use " in failure
            assert os.strerror(code) in failure
            assert "\n" not in failure
        after = contents(folder)
        remaining = {name: text for name, text in before.items() if name in ("ca.pem", "ca.key", "client.properties")}
        if act is not new_address:
            assert {name: after[name] for name in remaining} == remaining, f"{files.counted[-1]} has replaced a file"
        act(folder)
        check_whole(folder)
        assert {name: contents(folder)[name] for name in ("ca.pem", "ca.key") if name in remaining} == {
            name: text for name, text in remaining.items() if name != "client.properties"
        }
    assert number > 3, "hardly any operation was seen"


def test_a_file_that_was_there_with_a_wider_mode_is_made_private(tmp_path: Path) -> None:
    folder = SecureFolder(str(tmp_path / "data"))
    start(folder)
    folder.server.chmod(0o644)
    folder.renew()
    assert stat.S_IMODE(folder.server.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "arguments", [("cert", "renew"), ("cert", "client", "app"), ("cert", "show")], ids=lambda words: words[1]
)
def test_commands_answer_with_a_sentence(tmp_path: Path, capsys, arguments: tuple[str, ...]) -> None:
    folder = SecureFolder(str(tmp_path / "data"))
    start(folder)
    with FailingCalls(folder.path) as files:
        assert run_command([*arguments, "--data-dir", str(tmp_path / "data")]) == 0
    capsys.readouterr()
    for number in range(1, len(files.counted) + 1):
        with FailingCalls(folder.path, number) as failing:
            code = run_command([*arguments, "--data-dir", str(tmp_path / "data")])
        shown = capsys.readouterr()
        if code == 0:
            continue  # what failed was not needed
        assert code == 2, failing.counted[-1]
        assert shown.out == ""
        assert "Input/output error" in shown.err
        assert shown.err.count("\n") == 1
