"""Follows a page as a reader does: its blocks in their order, in a fresh directory and a fresh environment.

The port 9092 of the page is another, free one during the test, in the blocks and in the outputs, so that pages can be
tested at the same time; so are 9093, 9094 and 19092. A broker that a block starts in the background must accept
connections before the next block runs, and must end with exit code 0 when it is interrupted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.pages.environment import ROOT, SHARED, PageEnvironment
from tests.pages.outputs import matches
from tests.support.blocks import Block, PageError
from tests.support.processes.ports import free_port

PORTS = ("9092", "9093", "9094", "19092")
BLOCK_TIMEOUT_S = 400.0
"""Ends what hangs; no block takes nearly as long, even on a busy machine."""
_PORT = re.compile(rf"\b({'|'.join(PORTS)})\b")
_TARGET = re.compile(r"make ([a-z-]+)\s*(#.*)?")


@dataclass
class Follower:
    """One reader of one page. `close` ends the commands in the background."""

    page: str
    root: Path
    environment: PageEnvironment
    shared: Path
    variables: dict[str, str] = field(default_factory=dict)
    with_soak: bool = False

    def __post_init__(self) -> None:
        self.directory = self.root / "page"
        self.home = self.root / "home"
        self.home.mkdir()
        self.ports = {port: str(free_port()) for port in PORTS}
        self.background: subprocess.Popen[str] | None = None
        self.steps: subprocess.Popen[str] | None = None
        """The first process of the group in which the steps of CI services run; it keeps the group's number taken."""
        self.output = ""

    def follow(self, blocks: list[Block]) -> None:
        """Test all blocks; PageError names the first that does not hold."""
        try:
            for block in blocks:
                self.test(block)
            self.close()
        finally:
            self.end_all()

    def test(self, block: Block) -> None:
        """Test one block as its marker says."""
        text = self.with_ports(block.text)
        if block.how in NOT_RUN:
            NOT_RUN[block.how](block)
        elif block.how == "background":
            self.start(block, text)
        elif block.how == "output":
            _check_output(block, text, self.output)
        elif block.how == "file":
            self.write(block, text)
        elif block.how == "steps":
            for step in shell_steps(block):
                self.run(block, self.with_ports(step), "sh")
        elif block.how != "soak" or self.with_soak:
            self.run(block, text)
        if block.how in ("prints", "fails") and block.argument not in self.output:
            raise PageError(f"{block.place}: {block.argument!r} is not in the output:\n{self.output}")

    def with_ports(self, text: str) -> str:
        """The text with the ports of this test."""
        return _PORT.sub(lambda match: self.ports[match[1]], text)

    def write(self, block: Block, text: str) -> None:
        """Write a file of the page's directory."""
        parse(block)
        path = self.directory / block.argument
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, block: Block, text: str, language: str = "") -> None:
        """Run a block to its end and keep its output. The exit code must be 0, or another one if the block `fails`."""
        language = language or block.language
        if language == "console":
            for command, shown in console_steps(block, text):
                self.output = self._run(block, ["bash", "-eu", "-o", "pipefail", "-c", command])
                _check_output(block, shown, self.output)
        elif language == "python":
            script = self.root / f"line_{block.line}.py"
            script.write_text(text)
            self.output = self._run(block, ["python", str(script)])
        elif language == "sh":
            self.output = self._run(block, ["bash", "-eu", "-o", "pipefail", "-c", text])
        else:
            raise PageError(f"{block.place}: a block in {language!r} cannot be run")

    def _run(self, block: Block, command: list[str]) -> str:
        """The stdout of a command, with stderr if it `fails`. PageError if the exit code is not the expected one."""
        log = self.root / "stderr"
        with log.open("w+") as errors:
            group = {"process_group": self._group_of_steps()} if block.how == "steps" else {"start_new_session": True}
            process = self._popen(command, stdout=subprocess.PIPE, stderr=errors, **group)
            try:
                output, _ = process.communicate(timeout=BLOCK_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                _end(process, signal.SIGKILL)
                raise PageError(f"{block.place}: does not end\n{log.read_text(errors='replace')[-6000:]}") from None
        if bool(process.returncode) != (block.how == "fails"):
            log_text = log.read_text(errors="replace")[-6000:]
            log_text = f"{block.text}\n{output[-4000:]}{log_text}{self._broker_log()}"
            raise PageError(f"{block.place}: exit code {process.returncode}\n{log_text}")
        return output + log.read_text(errors="replace") if block.how == "fails" else output

    def start(self, block: Block, text: str) -> None:
        """Start a shell block in the background, after the end of the one before, and wait for its ready line."""
        self.close()
        written = self.root / "background.log"
        with written.open("w") as log:
            self.background = self._popen(["bash", "-eu", "-c", text], stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + BLOCK_TIMEOUT_S
        while " started on " not in written.read_text(errors="replace") or not _accepts(int(self.ports["9092"])):
            if self.background.poll() is not None or time.monotonic() > deadline:
                raise PageError(f"{block.place}: does not serve 127.0.0.1:9092{self._broker_log()}")
            time.sleep(0.01)

    def close(self) -> None:
        """Interrupt the background command, as Ctrl-C does; PageError if it does not end with exit code 0."""
        process, self.background = self.background, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            code = -signal.SIGKILL
        if code:
            raise PageError(f"{self.page}: what runs in the background has ended with {code}{self._broker_log()}")

    def end_all(self) -> None:
        """End what a page that does not hold has left behind."""
        for process in (self.steps, self.background):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.communicate()

    def _broker_log(self) -> str:
        path = self.root / "background.log"
        return f"\nin the background:\n{path.read_text(errors='replace')[-3000:]}" if path.exists() else ""

    def _popen(self, command: list[str], **files: Any) -> subprocess.Popen[str]:
        files = {
            "stdin": subprocess.DEVNULL,
            "text": True,
            "cwd": self.directory,
            "env": self._variables(command),
            **files,
        }
        return subprocess.Popen(command, **files)

    def _group_of_steps(self) -> int:
        """The process group of the steps of CI services, which may leave a broker behind for the next step."""
        if self.steps is None:
            self.steps = subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True, process_group=0)
        return self.steps.pid

    def _variables(self, command: list[str]) -> dict[str, str]:
        """The variables of a fresh login, and variables that move default ports where no file configures them."""
        inherited = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
        java = [str(Path(java_path).parent)] if (java_path := shutil.which("java")) else []
        path = os.pathsep.join([str(self.environment.bin), "/usr/local/bin", "/usr/bin", "/bin", *java])
        address = f"127.0.0.1:{self.ports['9092']}"
        moved = {"BARNABAS_BOOTSTRAP_SERVERS": address}
        if not any("--config" in word for word in command):
            moved["KAFKA_LISTENERS"] = f"PLAINTEXT://{address}"
        fixed = {"PATH": path, "HOME": str(self.home), "USER": "reader", SHARED: str(self.shared)}
        return {**inherited, **moved, **fixed, **self.variables}


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(process: subprocess.Popen[str], number: signal.Signals) -> None:
    os.killpg(os.getpgid(process.pid), number)
    process.wait()


def console_steps(block: Block, text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown below it."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line.removeprefix("$ "), ""))
        elif not steps:
            raise PageError(f"{block.place}: a console block begins with `$ COMMAND`")
        elif line.startswith("> "):
            steps[-1] = (f"{steps[-1][0]}\n{line.removeprefix('> ')}", "")
        else:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
    return steps


def parse(block: Block) -> None:
    """Check the syntax of a block of data."""
    try:
        match block.language:
            case "toml":
                tomllib.loads(block.text)
            case "yaml":
                yaml.safe_load(block.text)
            case "json":
                for line in block.text.strip().splitlines():
                    json.loads(line)
    except (ValueError, yaml.YAMLError) as error:
        raise PageError(f"{block.place}: not {block.language}: {error}") from error


def shell_steps(block: Block) -> list[str]:
    """The shell commands of a workflow of GitHub Actions (`run`) or of a job of GitLab CI (`script`)."""
    parse(block)
    document = yaml.safe_load(block.text)
    jobs = document.get("jobs", document)
    steps: list[str] = []
    for job in jobs.values():
        steps += [step["run"] for step in job.get("steps", ()) if "run" in step]
        steps += [*job.get("before_script", ()), *job.get("script", ())]
    if not steps:
        raise PageError(f"{block.place}: has no shell steps")
    return steps


def _check_targets(block: Block) -> None:
    """Each line is `make TARGET`, with a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in block.text.strip().splitlines():
        match = _TARGET.fullmatch(line)
        if match is None or match[1] not in targets:
            raise PageError(f"{block.place}: {line!r} is not `make TARGET` with one of {', '.join(sorted(targets))}")


def _check_output(block: Block, shown: str, real: str) -> None:
    if not matches(shown, real):
        raise PageError(f"{block.place}: the page shows\n{shown}\nbut the output is\n{real}")


def _check_same(block: Block) -> None:
    path = ROOT / block.argument.removeprefix("as ")
    if path.read_text(encoding="utf-8") != block.text:
        raise PageError(f"{block.place}: is not the content of {path.relative_to(ROOT)}")


def _no_run(_: Block) -> None:
    """What has the marker `skip`: `test_pages` counts it."""


NOT_RUN = {"skip": _no_run, "targets": _check_targets, "same": _check_same, "parse": parse}
"""The checks of blocks that are not run."""
