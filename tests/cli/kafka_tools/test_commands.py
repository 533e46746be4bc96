"""Kafka's tools as processes: names, mistakes in names, where the broker's address is from, a reader that ends."""

from __future__ import annotations

import os
import subprocess

import pytest

from barnabas.cli.kafka_tools.registry import MISSING
from tests.support.processes.commands import COMMAND, run_command


def test_a_tool_is_found_with_the_ending_of_its_script(broker):
    created = run_command("kafka-topics.sh", "--bootstrap-server", broker.bootstrap, "--create", "--topic", "with-sh")
    assert created.ok().stdout == "Created topic with-sh.\n"


def test_the_address_is_taken_from_the_environment(broker, run):
    assert "there" not in run("kafka-topics", "--list").ok().stderr
    missing = run_command("kafka-topics", "--list")
    assert (missing.code, missing.stdout) == (1, "")
    assert missing.stderr.startswith("--bootstrap-server must be specified\n")


def test_a_subscription_of_client_metrics_can_have_a_random_name(broker, run):
    out = run("kafka-client-metrics", "--alter", "--generate-name", "--metrics", "org.apache").ok().stdout
    name = out.removeprefix("Altered client metrics config for ").removesuffix(".\n")
    assert len(name) == 22
    assert name in run("kafka-client-metrics", "--list").ok().stdout.splitlines()
    run("kafka-client-metrics", "--delete", f"--name={name}").ok()


def test_a_mistyped_tool_is_suggested():
    ran = run_command("kafka-topcs", "--list")
    assert ran.code == 2
    assert "did you mean kafka-topics?" in ran.stderr


@pytest.mark.parametrize("name", ["kafka-e2e-latency", "kafka-replica-verification", "kafka-server-start.sh"])
def test_a_tool_that_is_not_here_says_why(name):
    ran = run_command(name, "--list")
    assert ran.code == 2
    assert ran.stderr == f"barnabas: {name.removesuffix('.sh')} is not available: {MISSING[name.removesuffix('.sh')]}\n"


def test_a_broker_that_does_not_answer_is_an_error_at_once():
    ran = run_command("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--list")
    assert ran.code == 1
    assert "no broker answers at 127.0.0.1:1" in ran.stdout


def test_mistakes_about_tls_are_told_and_unused_keys_are_named(broker, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x\nacks=1\n", encoding="utf-8")
    options = ("--bootstrap-server", broker.bootstrap, "--command-config", str(file))
    ran = run_command("kafka-topics", *options, "--list")
    assert ran.code == 1
    assert "Login module control flag not specified in JAAS config: it must be MODULE required" in ran.stderr
    assert "no effect in Barnabas' commands: acks\n" in ran.stderr


def test_the_console_consumer_ends_when_its_reader_has_ended(broker, run, topic_name):
    topic = topic_name("read-by-head")
    run("kafka-console-producer", "--topic", topic, stdin="one\ntwo\nthree\n").ok()
    reading, writing = os.pipe()
    command = [*COMMAND, "kafka-console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic]
    with subprocess.Popen([*command, "--from-beginning"], stdout=writing, stderr=subprocess.DEVNULL) as consumer:
        os.close(writing)
        assert os.read(reading, 100)
        os.close(reading)
        assert consumer.wait(60) == 0
