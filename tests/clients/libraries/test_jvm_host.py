"""The JVM that runs Java programs for all processes of a test run: each run is as in a JVM of its own, and it ends."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.jvm import host
from tests.support.jvm.kafka_tools import class_path
from tests.support.waiting import wait_for

pytestmark = pytest.mark.jvm
WAIT_S = 60.0
OPTIONS = ("-Dbarnabas.own=yes",)
"""So that these tests have a JVM for themselves: some end it."""
PROGRAM = """
import org.apache.kafka.common.utils.Exit;

public class Program {
    private static int counter = 7;

    public static void main(String[] words) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook of Runtime")));
        Exit.addShutdownHook("hook", () -> System.out.println("hook of Exit"));
        switch (words[0]) {
            case "count": System.out.println(counter++); break;
            case "copy": System.in.transferTo(System.out); System.err.print("done"); break;
            case "throw": throw new IllegalStateException("thrown");
            case "exit":
                try {
                    Exit.exit(3);
                } catch (Throwable error) {
                    System.out.println("not heard");
                    Exit.exit(4);
                }
                break;
            case "exit elsewhere": new Thread(() -> Exit.exit(5)).start(); Thread.sleep(600_000); break;
            case "sleep": Thread.sleep(600_000); break;
            case "end the JVM": Runtime.getRuntime().halt(1); break;
            case "option": System.out.println(System.getProperty("barnabas.own")); break;
        }
    }
}
"""
MEETING = """
import java.util.concurrent.*;

public class Meeting {
    private static final CyclicBarrier BARRIER = new CyclicBarrier(2);

    public static void main(String[] words) throws Exception {
        BARRIER.await(60, TimeUnit.SECONDS);
        Thread thread = new Thread(() -> System.out.println(words[0]));
        thread.start();
        thread.join();
    }
}
"""
HOOKS = ["hook of Exit", "hook of Runtime"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The class path of the programs."""
    folder = tmp_path_factory.mktemp("classes")
    for name, text in (("Program", PROGRAM), ("Meeting", MEETING)):
        (folder / f"{name}.java").write_text(text)
    jars = class_path()
    sources = [str(path) for path in folder.glob("*.java")]
    done = host.compile_java("-cp", ":".join(map(str, jars)), "-d", str(folder), *sources)
    assert done.code == 0, done.errors
    return [folder, *jars]


def run(classes: list[Path], what: str, **how: object) -> tuple[int, list[str], str]:
    """The exit code, the lines of stdout without the lines of the hooks, which must come last, and stderr."""
    done = host.run(classes, "Program", what, options=OPTIONS, **how)  # type: ignore[arg-type]
    lines = done.out.splitlines()
    assert sorted(lines[-2:]) == HOOKS
    return done.code, lines[:-2], done.errors


def test_a_counter_begins_anew_with_each_run(classes: list[Path]) -> None:
    assert [run(classes, "count")[:2] for _ in range(3)] == [(0, ["7"])] * 3


def test_a_run_has_its_own_standard_streams(classes: list[Path]) -> None:
    code, lines, errors = run(classes, "copy", stdin="in\tput\n\N{SNOWMAN}\n")
    assert (code, lines, errors) == (0, ["in\tput", "\N{SNOWMAN}"], "done")


def test_an_exception_is_printed_and_code_1(classes: list[Path]) -> None:
    code, lines, errors = run(classes, "throw")
    assert (code, lines) == (1, [])
    assert errors.startswith("java.lang.IllegalStateException: thrown\n\tat Program.main(")


def test_the_first_exit_counts(classes: list[Path]) -> None:
    assert run(classes, "exit") == (3, [], "")


def test_an_exit_of_another_thread_ends_the_run(classes: list[Path]) -> None:
    assert run(classes, "exit elsewhere") == (5, [], "")
    assert run(classes, "count")[:2] == (0, ["7"]), "in another class loader, as the main thread goes on"


def test_a_run_that_takes_too_long_is_ended_and_its_stacks_are_told(classes: list[Path]) -> None:
    code, lines, errors = run(classes, "sleep", timeout_s=0.5)
    assert (code, lines) == (-1, [])
    assert "It has not ended in time" in errors
    assert "\tat Program.main(Program.java:" in errors


def test_runs_at_the_same_time_share_classes_but_no_stream(classes: list[Path]) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda word: host.run(classes, "Meeting", word, options=OPTIONS), ("a", "b")))
    assert both == [(0, "a\n", ""), (0, "b\n", "")]


def test_a_class_that_is_missing_is_said(classes: list[Path]) -> None:
    done = host.run(classes, "Missing", options=OPTIONS)
    assert done.code == 1
    assert done.errors.startswith("java.lang.ClassNotFoundException: Missing")


def test_a_program_that_ends_the_jvm_is_named(classes: list[Path]) -> None:
    """The next one has another JVM, with the options that it asks for."""
    with pytest.raises(host.HostError, match=r"the JVM has not answered: Program end the JVM: "):
        host.run(classes, "Program", "end the JVM", options=OPTIONS)
    assert run(classes, "option")[1] == ["yes"]


USER = """
import sys
from tests.support.jvm import host
print(host.run([sys.argv[1], *sys.argv[2:]], "Program", "count", options=("-Dbarnabas.other=yes",)).out.split()[0])
print(host.Host.started(), flush=True)
sys.stdin.read()
"""


def test_processes_share_the_jvm_and_it_ends_after_the_last(classes: list[Path]) -> None:
    command = [sys.executable, "-c", USER, *map(str, classes)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": host.ROOT}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:  # type: ignore[call-overload]
        outputs = [one.stdout.readline() + one.stdout.readline() for one in (first, second)]
        (starter,) = [one for one in outputs if "set()" not in one]
        assert sorted(outputs) == sorted(["7\nset()\n", starter])
        pid = int(starter.split("{")[1].rstrip("}\n"))
        assert Path(f"/proc/{pid}").exists()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the JVM", WAIT_S)
