"""Java and the connector's jars are checked before Spark starts; if one is missing, the error is one sentence."""

from __future__ import annotations

import os
import signal
import stat
import subprocess

import pytest
from pyspark import java_gateway

from barnabas.spark.errors import MistakeError
from barnabas.spark.session.jars import NEEDED, PACKAGES, cache_directory, jar_settings
from barnabas.spark.session.java import find_java, java_version
from barnabas.spark.session.spark import ended_if_interrupted
from tests.support.cases import for_each


def fake(path, script):
    """A program as a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def java(home, version):
    """A Java home whose bin/java reports this version."""
    return fake(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2026-01-20' >&2").parent.parent


@for_each(
    ("version", "number"),
    [("1.8.0_402", 8), ("11.0.22", 11), ("17.0.15", 17), ("21", 21), ("25-ea", 25), ("17.0.1+12", 17)],
)
def test_the_version_of_java(tmp_path, version, number):
    assert java_version(java(tmp_path, version) / "bin" / "java") == number


@pytest.mark.parametrize("script", ["echo garbage", "exit 1", "echo version"])
def test_a_java_without_a_version_is_ignored(tmp_path, script):
    assert java_version(fake(tmp_path / "java", script)) is None
    assert java_version(tmp_path / "none") is None


def test_a_wrong_java_home_is_an_error(tmp_path):
    good, old, new = java(tmp_path / "17", "17.0.1"), java(tmp_path / "8", "1.8.0_1"), java(tmp_path / "25", "25")
    path = str(good / "bin")
    assert find_java({"JAVA_HOME": str(good), "PATH": ""}, ()) == good
    for home, number in ((old, 8), (new, 25)):
        with pytest.raises(
            MistakeError, match=rf"needs Java 17 or 21, and JAVA_HOME .*{number}\) is Java {number}: set"
        ):
            find_java({"JAVA_HOME": str(home), "PATH": path}, ())
    with pytest.raises(MistakeError, match=r"JAVA_HOME is .*none, which has no working bin/java: set it"):
        find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": path}, ())


def test_the_path_is_searched_before_the_usual_directories(tmp_path):
    good, other, old = java(tmp_path / "a17", "17"), java(tmp_path / "b21", "21"), java(tmp_path / "old", "11.0.1")
    places = (f"{tmp_path}/*/bin/java",)
    assert find_java({"PATH": str(other / "bin")}, places) == other
    assert find_java({"PATH": str(old / "bin")}, places) == good
    assert find_java({"PATH": ""}, places) == good


def test_a_link_on_the_path_is_resolved(tmp_path):
    good = java(tmp_path / "17", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(good / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, ()) == good


def test_without_java_the_error_says_how_to_install_it(tmp_path):
    with pytest.raises(MistakeError, match=r"needs Java 17 or 21, and none was found: install it .*apt-get install"):
        find_java({"PATH": str(tmp_path)}, (f"{tmp_path}/*/bin/java",))
    old = java(tmp_path / "old", "11.0.1")
    with pytest.raises(
        MistakeError, match=r"needs Java 17 or 21, and .*java is Java 11: install one and set JAVA_HOME"
    ):
        find_java({"PATH": str(old / "bin")}, ())


def test_jars_that_were_given(tmp_path):
    for name in NEEDED:
        (tmp_path / f"{name}-1.jar").touch()
    settings = jar_settings({"BARNABAS_SPARK_JARS": str(tmp_path), "PATH": ""})
    assert sorted(settings["spark.jars"].split(",")) == sorted(str(tmp_path / f"{name}-1.jar") for name in NEEDED)


@for_each("missing", NEEDED)
def test_a_directory_without_a_jar(tmp_path, missing):
    for name in NEEDED:
        if name != missing:
            (tmp_path / f"{name}-1.jar").touch()
    with pytest.raises(MistakeError, match=rf"BARNABAS_SPARK_JARS is .*, which has no {missing} jar: name a directory"):
        jar_settings({"BARNABAS_SPARK_JARS": str(tmp_path), "PATH": ""})
    with pytest.raises(MistakeError, match=r"BARNABAS_SPARK_JARS is .*none, which has no spark-sql-kafka"):
        jar_settings({"BARNABAS_SPARK_JARS": str(tmp_path / "none"), "PATH": ""})


def test_without_maven_spark_fetches_packages_itself(tmp_path):
    assert jar_settings({"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}) == {"spark.jars.packages": PACKAGES}


def test_the_cache_is_in_the_xdg_directory(tmp_path):
    assert cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "barnabas" / "spark-4.0.0"
    assert cache_directory({"XDG_CACHE_HOME": ""}).parts[-3:] == (".cache", "barnabas", "spark-4.0.0")


def test_maven_that_fails_says_why_and_what_to_do(tmp_path, monkeypatch):
    fake(tmp_path / "bin" / "mvn", "echo '[ERROR] Could not transfer artifact x: Connection refused'; exit 1")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin"}
    monkeypatch.setenv("PATH", environment["PATH"])
    with pytest.raises(
        MistakeError, match=r"cannot be downloaded \(is there a network\?\).*Connection refused"
    ) as caught:
        jar_settings(environment)
    assert "set BARNABAS_SPARK_JARS" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_jars_are_downloaded_once(tmp_path, monkeypatch):
    jars = " ".join(f"$dir/{name}-1.jar" for name in NEEDED)
    script = 'for a; do case $a in -DoutputDirectory=*) dir=${a#*=};; esac; done; mkdir -p "$dir"; touch ' + jars
    fake(tmp_path / "bin" / "mvn", f"{script}; echo x >> {tmp_path}/asked")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin"}
    monkeypatch.setenv("PATH", environment["PATH"])
    assert jar_settings(environment) == jar_settings(environment)
    assert (tmp_path / "asked").read_text() == "x\n"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    fake(tmp_path / "bin" / "mvn", "exit 0")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "file"), "PATH": str(tmp_path / "bin")}
    monkeypatch.setenv("PATH", environment["PATH"])
    with pytest.raises(MistakeError, match=r"cannot be stored in .*: set XDG_CACHE_HOME"):
        jar_settings(environment)


def test_java_ignores_the_signals_that_stop_a_job():
    """`timeout` and systemd send SIGTERM to Java too: the job found no Java to stop its queries, and failed."""
    with ended_if_interrupted():
        java = java_gateway.Popen(["sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert java.stdout.readline() == b"ready\n"
    for number in (signal.SIGINT, signal.SIGTERM):
        java.send_signal(number)
    assert java.poll() is None
    java.communicate(b"end\n", timeout=60)
    assert java.returncode == 0


def test_java_ends_if_the_start_of_spark_is_interrupted():
    started = []

    def start():
        with ended_if_interrupted():
            started.append(java_gateway.Popen(["sleep", "60"]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started[0].returncode == -signal.SIGKILL
    assert java_gateway.Popen is subprocess.Popen
