"""What a TAB gives, and what installing changes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import click
import pytest

from barnabas.cli.app import CONTEXT, app
from barnabas.cli.completion.values import PATIENCE_S, items_for
from barnabas.storage.topic_keys import TOPIC_KEYS
from tests.support.cases import for_each
from tests.support.processes.commands import COMMAND, Ran, run_command

UNREACHABLE = "127.0.0.1:1"


def after(line: str, bootstrap: str = UNREACHABLE, patience: str = "60", **environment: str) -> list[str]:
    """The completions at the end of a line, as bash gets them."""
    ran = run_command(
        BARNABAS_COMPLETION_TIMEOUT=patience,
        _BARNABAS_COMPLETE="bash_complete",
        COMP_LINE=line,
        COMP_POINT=str(len(line.encode())),
        COMP_WORDBREAKS="\"'><=;|&(:",
        bootstrap=bootstrap,
        **environment,
    )
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines() if line]


def test_names_that_need_no_broker() -> None:
    assert after("barnabas topic cr") == ["create"]
    assert after("barnabas config get broker 1 num.io") == ["num.io.threads"]
    assert after("barnabas config set group g share.auto.offset.reset=") == []
    assert after("barnabas topic create x -c preallocate=t") == ["true"]
    assert after("barnabas wire decode MetadataReq") == ["MetadataRequest"]
    assert after("barnabas group list --state Sta") == ["Stable"]
    assert after("barnabas consume t -o beg") == ["beginning"]
    assert after("barnabas topic list -X outp") == ["output="]
    assert after("barnabas topic list -X output=js") == ["json"]
    assert set(after("barnabas topic create x -c ")) == {f"{name}=" for name in TOPIC_KEYS}


def test_live_names(run, broker, topic) -> None:
    run("topic", "create", topic, "-p", "2").ok()
    assert after(f"barnabas topic delete {topic[:-2]}", broker.bootstrap) == [topic]
    assert after(f"barnabas topic delete {topic} {topic[:-2]}", broker.bootstrap) == [], "named already"
    assert after(f"barnabas topic delete -b {broker.bootstrap} {topic[:-2]}") == [topic], "the option's broker"
    assert after(f"barnabas -b {broker.bootstrap} topic delete {topic[:-2]}") == [topic]
    assert after(f"barnabas consume -b {broker.bootstrap} {topic} -p ") == ["0", "1"]
    assert after(f"barnabas group forget g -t {topic}:", broker.bootstrap) == ["0", "1"]
    assert "__consumer_offsets" not in after("barnabas topic describe ", broker.bootstrap)
    assert after("barnabas config get broker ", broker.bootstrap) == ["1"]


def test_the_profile_has_the_broker(run, broker, topic, tmp_path: Path) -> None:
    run("topic", "create", topic).ok()
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    run_command("profile", "create", "here", f"bootstrap={broker.bootstrap}", **home).ok()
    run_command("profile", "create", "other", f"bootstrap={UNREACHABLE}", **home).ok()
    line = f"barnabas topic describe --profile here {topic[:-2]}"
    assert after(line, "", **home) == [topic]
    assert after("barnabas topic list --profile ", "", **home) == ["here", "other"]
    assert after("barnabas profile use h", "", **home) == ["here"]


@for_each("line", ["barnabas topic describe ", "barnabas nonsense x ", "barnabas topic list -b x:y -", ""])
def test_nothing_to_complete_is_no_error(line: str) -> None:
    after(line)


def test_a_mistake_in_the_users_file_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "config.toml").write_text("nonsense")
    assert after("barnabas topic describe x", "", XDG_CONFIG_HOME=str(tmp_path)) == []
    assert after("barnabas topic desc", "", XDG_CONFIG_HOME=str(tmp_path)) == ["describe"]


def test_a_silent_broker_is_given_up() -> None:
    assert PATIENCE_S <= 0.6
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert after("barnabas topic describe ", f"127.0.0.1:{silent.getsockname()[1]}", patience="") == []


def commands(command: click.Command, context: click.Context) -> list[click.Context]:
    if not isinstance(command, click.Group):
        return [context]
    shown = []
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        shown += commands(inner, click.Context(inner, context, name, resilient_parsing=True))
    return shown


FREE = {
    "CLIENT",
    "DATA",
    "EXPRESSION",
    "FORMAT",
    "HEX",
    "HOST",
    "ID",
    "JSON",
    "N",
    "NAME",
    "PACK",
    "REGEX",
    "TEXT",
    "TIME",
    "URL",
}
"""Metavars of texts that only the user knows."""


def test_every_text_is_completed_or_known_to_be_free() -> None:
    """A new parameter needs a metavar that `values` knows, or one of FREE."""
    missing = []
    for context in commands(app, click.Context(app, None, "barnabas", resilient_parsing=True, **CONTEXT)):
        for param in context.command.get_params(context):
            if not isinstance(param.type, type(click.STRING)) or getattr(param, "is_flag", False):
                continue
            metavar = param.make_metavar(context)
            if items_for(context, param, "\0") is None and re.findall("[A-Z]+", metavar)[0] not in FREE:
                missing.append(f"{context.command_path} {param.opts[-1]} {metavar}")
    assert not missing


# --- printing and installing


@for_each("shell", ["bash", "zsh", "fish", "powershell"])
def test_scripts_are_printed(shell: str) -> None:
    script = run_command("completion", shell).ok().stdout
    assert f"{shell}_complete" in script
    assert "%(" not in script


def install(home: Path, *arguments: str, shell: str = "/bin/bash") -> Ran:
    return run_command(
        "completion", *arguments, HOME=str(home), SHELL=shell, XDG_DATA_HOME="", XDG_CONFIG_HOME="", ZDOTDIR=""
    )


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_install_adds_one_line_and_uninstall_removes_it(tmp_path: Path, shell: str) -> None:
    rc = tmp_path / f".{shell}rc"
    rc.write_text("alias ll='ls -l'")
    rc.chmod(0o600)
    first = install(tmp_path, "install", shell=f"/usr/bin/{shell}").ok()
    assert first.lines == [f"wrote {tmp_path}/.local/share/barnabas/completion.{shell}", f"added a line to {rc}"]
    assert f"uninstall --shell {shell}' undoes it" in first.stderr
    installed = rc.read_text()
    assert installed.startswith("alias ll='ls -l'\n[ -r ")
    again = install(tmp_path, "install", shell=f"/usr/bin/{shell}").ok()
    assert again.lines == ["it was installed already; nothing was changed"]
    assert rc.read_text() == installed
    assert rc.stat().st_mode & 0o777 == 0o600
    install(tmp_path, "uninstall", "--shell", shell).ok()
    assert rc.read_text() == "alias ll='ls -l'\n"
    assert not list((tmp_path / ".local").rglob("completion.*"))
    assert install(tmp_path, "uninstall", "--shell", shell).ok().lines == ["it was not installed; nothing was changed"]


def test_fish_needs_no_line(tmp_path: Path) -> None:
    script = tmp_path / ".config" / "fish" / "completions" / "barnabas.fish"
    assert install(tmp_path, "install", "--shell", "fish").ok().lines == [f"wrote {script}"]
    assert script.read_text() == run_command("completion", "fish").stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [script]


def test_an_old_script_is_replaced(tmp_path: Path) -> None:
    install(tmp_path, "install").ok()
    script = tmp_path / ".local" / "share" / "barnabas" / "completion.bash"
    script.write_text("# of an older version\n")
    assert install(tmp_path, "install").ok().lines == [f"wrote {script}"]


@pytest.mark.parametrize("shell", ["/bin/ksh", ""])
def test_an_unknown_shell_is_one_sentence(tmp_path: Path, shell: str) -> None:
    ran = install(tmp_path, "install", shell=shell)
    assert ran.code == 2
    assert "--shell must be one of bash, zsh, fish; SHELL is" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_bash_reads_its_script_without_a_warning(tmp_path: Path) -> None:
    script = subprocess.run([*COMMAND, "completion", "bash"], capture_output=True, check=True).stdout
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=os.environ, check=True)
    assert done.stderr == b""
