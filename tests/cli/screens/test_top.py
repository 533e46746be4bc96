"""`barnabas top`: its lines at several sizes, its keys, and the terminal before, meanwhile and afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from barnabas.cli.top.frame import State, draw, press
from barnabas.cli.top.tables import ClientRates, Snapshot, amount, snapshot
from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets
from barnabas.console.collector.figures import (
    BrokerFigures,
    Figures,
    GroupFigures,
    HeldPartition,
    TopicFigures,
    TransactionFigures,
)
from barnabas.terminal.keys import KeyDecoder
from barnabas.terminal.layout import cell_width
from barnabas.wire.clients.broker_load import BrokerLoad
from tests.support.processes.commands import run_command
from tests.support.processes.terminal import COMMAND, ESCAPE, Terminal

NOW_S = 1_800_000_000.0
SIZES = ((40, 12), (80, 24), (100, 30), (200, 50), (20, 3))


def a_cluster() -> Figures:
    figures = Figures(cluster_id="cluster-1", controller=1)
    load = BrokerLoad(0.07, 0.5, 1e9, 0.79, 1e6, 3000.0, 3.0, 90.0)
    figures.brokers[1] = BrokerFigures(1, "a", 9092, answers=True, load=load, disk_used=0.79)
    figures.brokers[2] = BrokerFigures(2, "b", 9092, answers=False, failure="no broker answers at b:9092")
    figures.brokers[3] = BrokerFigures(3, "kafka", 9092, answers=True, disk_used=0.25)  # Apache Kafka tells no load
    for number in range(60):
        topic = figures.topics[f"topic-{number:02}"] = TopicFigures(f"topic-{number:02}")
        topic.describe([1, 1], 0)
        topic.put_ends({0: 0, 1: 0}, NOW_S - 2)
        topic.put_ends({0: 100 * number, 1: 0}, NOW_S)
    for name, offset in (("slow\x1b[31m\u202e", 10), ("見る人", 5000)):
        figures.groups[name] = GroupFigures(name, state="Empty")
        figures.put_offsets(figures.groups[name], {("topic-59", 0): offset, ("topic-59", 1): 0}, NOW_S)
    held = HeldPartition("topic-59", 0, 10, 5900)
    figures.transactions = [TransactionFigures("pay", "Ongoing", 1, 0, 1, int(NOW_S * 1000) - 90_000, 60_000, (held,))]
    figures.put_totals(NOW_S)
    return figures


def a_snapshot() -> Snapshot:
    clients = ClientRates()
    counted = {"client_id": "shop", "requests": 10, "errors": 0, "apis": {"Produce": 9, "Metadata": 1}}
    clients.put([counted], 1.0)
    clients.put([counted | {"requests": 50, "errors": 4}], 3.0)
    return snapshot(a_cluster(), NOW_S, clients)


def screen(state: State, shown: Snapshot | None, columns: int = 80, lines: int = 24) -> str:
    return "\n".join(ESCAPE.sub("", line) for line in draw(state, shown, columns, lines))


def test_every_screen_fits_at_every_size_with_and_without_colour() -> None:
    shown = a_snapshot()
    for columns, lines in SIZES:
        for has_colour, is_unicode in ((True, True), (False, False)):
            for tab in ("All", *(table.name for table in shown.tables)):
                state = State(has_colour=has_colour, is_unicode=is_unicode, tab=tab, is_tree=True)
                drawn = draw(state, shown, columns, lines)
                assert len(drawn) <= lines
                assert max(cell_width(ESCAPE.sub("", line)) for line in drawn) <= columns, (columns, tab)
                assert has_colour or not any("\x1b" in line for line in drawn)
                if not is_unicode:
                    assert all(ord(char) < 128 or char in "見る人" for line in drawn for char in line)
                assert "\u202e" not in "".join(drawn)
            assert len(draw(State(shows_help=True), shown, columns, lines)) <= lines
            assert "no broker" in screen(State(), None) or draw(State(), None, columns, lines, "no broker answers")


def test_the_first_screen_has_all_that_happens() -> None:
    text = screen(State(), a_snapshot())
    for part in (
        "cluster-1",
        "CPU[",
        "79%]",
        "2 does not answer: no broker answers at b:9092",
        "3 kafka:9092  leads 0  Disk 25%",
        "topic-59",
        "2.9k",
    ):
        assert part in text, part
    for part in ("見る人", "slow\\x1b[31m\\u202e", "shop", "20", "Produce", "pay", "1 min 30 s", "5.9k", "Warnings"):
        assert part in text, part
    wide = screen(State(), a_snapshot(), 200, 50)
    assert re.search(r"TOPIC .* GROUP ", wide)
    without = snapshot(a_cluster(), NOW_S, None)
    assert "Clients" not in screen(State(), without)


def keys(state: State, shown: Snapshot, *pressed: str) -> str:
    for key in pressed:
        press(state, key, shown)
    return screen(state, shown)


def test_keys_choose_tables_rows_order_filter_and_trees() -> None:
    shown, state = a_snapshot(), State(has_colour=False)
    text = keys(state, shown, "tab")
    assert "[2 Topics]" in text
    assert ">topic-59" in text
    assert ">topic-57" in keys(state, shown, "down", "j")
    assert ">topic-58" in keys(state, shown, "up")
    assert ">topic-00" in keys(state, shown, "end")
    assert ">topic-59" in keys(state, shown, "home")
    assert ">topic-59" not in keys(state, shown, "page-down")
    assert "IN/S▲" in keys(state, shown, "I")
    assert "OUT/S▼" in keys(state, shown, "f6")
    assert "IN/S▼" in keys(state, shown, "<")
    text = keys(state, shown, "home", "enter")
    assert "group slow\\x1b[31m\\u202e: lag 5.9k" in text
    assert "group " not in keys(state, shown, "enter")
    text = keys(state, shown, "f4", "0", "7", "x", "backspace")
    assert "filter: 07_" in text
    assert re.findall(r"topic-\d\d", text.split("TOPIC")[1]) == ["topic-07"]
    assert "topic-08" in keys(state, shown, "enter", "escape")
    assert ">topic-33" in keys(state, shown, "/", "3", "3", "enter")
    text = keys(state, shown, "g", "t")
    assert "[3 Groups]" in text
    assert "topic-59-0: lag 5.9k" in text
    assert "[7 Warnings]" in keys(state, shown, "7")
    assert "[1 All]" in keys(state, shown, "right")
    assert "paused" in keys(state, shown, "p")
    assert "Tab, 1 … 7" in keys(state, shown, "f1")
    assert "[1 All]" in keys(state, shown, "x")  # any key ends the help
    assert not state.is_done
    keys(state, shown, "f10")
    assert state.is_done


def test_bytes_become_keys_also_in_pieces() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"q\x1b[A\x1bOP\x1b[21~\x1b[Z\t\x7f\xc3") == [
        "q",
        "up",
        "f1",
        "f10",
        "back-tab",
        "tab",
        "backspace",
    ]
    assert decoder.feed(b"\xa4\x1b") == ["ä"]
    assert decoder.is_within_escape
    assert decoder.feed(b"[6~\x1b[99;9u") == ["page-down"]  # a sequence that is no key of ours
    assert decoder.feed(b"\x1b") == []
    assert decoder.flush() == ["escape"]
    assert decoder.flush() == []
    assert decoder.feed(b"\x1bq") == ["escape", "q"]


def test_amounts_have_at_most_six_characters() -> None:
    numbers = (None, 0, 7.4, 999, 1000, 99_499, 99_500, 999_499, 1_000_000, 2.5e9, 7e15)
    texts = [amount(number) for number in numbers]
    assert texts == ["-", "0", "7", "999", "1.0k", "99.5k", "100k", "999k", "1.0M", "2.5G", "7000T"]


# --- on a terminal


def top(bootstrap: str, *arguments: str, columns: int = 80, lines: int = 24, **env: str) -> Terminal:
    given = ("top", "-b", bootstrap, "--interval", "0.2", *arguments)
    return Terminal(str(COMMAND), *given, columns=columns, lines=lines, env=env)


def test_it_is_drawn_in_place_follows_the_size_and_leaves_the_terminal_as_it_was(
    broker, topic_name: Callable[..., str]
) -> None:
    topic = topic_name("top")
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic, partitions=1)
        commit_offsets(cluster, topic, {(topic, 0): 0})
    with top(broker.bootstrap) as terminal:
        terminal.wait_for("[1 All]")
        terminal.type("o\\" + topic + "\r")
        terminal.wait_for(f">{topic}")
        assert len(terminal.screen.display) == 24
        terminal.resize(120, 40)
        terminal.wait_until(r"(?m)^ TOPIC {70,}")
        terminal.type("\x1b[21~")  # F10
        assert terminal.to_end() == 0
    assert terminal.raw.index("\x1b[?1049h") < terminal.raw.index("[1 All]") < terminal.raw.index("\x1b[?1049l")
    assert terminal.raw.rstrip().endswith("\x1b[?25h\x1b[?1049l")


def test_without_colour_and_ctrl_c(broker) -> None:
    with top(broker.bootstrap, NO_COLOR="1") as terminal:
        terminal.wait_for("[1 All]")
        terminal.type("\x03")
        assert terminal.to_end() == 130
    assert {escape for escape in ESCAPE.findall(terminal.raw) if escape.endswith("m")} <= {"\x1b[0m"}
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize("arguments", [("--interval", "0"), ("--control", "nonsense"), ("-b", "a/b")])
def test_mistakes_are_sentences(broker, arguments: tuple[str, ...]) -> None:
    with top(broker.bootstrap, *arguments) as terminal:
        assert terminal.to_end() == 2
    assert "\x1b[?1049h" not in terminal.raw
    assert terminal.text.startswith("barnabas top: ")


def test_without_a_screen_it_says_so(broker) -> None:
    ran = run_command("top", bootstrap=broker.bootstrap)
    assert (ran.code, ran.stdout) == (2, "")
    assert "'barnabas group lag'" in ran.stderr
    with top(broker.bootstrap, TERM="dumb") as terminal:
        assert terminal.to_end() == 2
    assert "\x1b" not in terminal.raw


def test_without_a_broker_the_screen_says_so() -> None:
    with top("127.0.0.1:1") as terminal:
        terminal.wait_for("no broker answers at 127.0.0.1:1")
        terminal.type("q")
        assert terminal.to_end() == 0
