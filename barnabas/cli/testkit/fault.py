"""`barnabas fault`: fault rules of a broker with `serve --control`, for tests in any language."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import output_option
from barnabas.cli.testkit.control_channel import control_options, perform
from barnabas.terminal.tables import show_fields, show_rows

COLUMNS = ("rule", "requests", "action", "hits", "seen")


@click.group(cls=Group)
def fault() -> None:
    """Make requests of clients fail, wait or be lost, at a broker that runs with --control.

    A rule selects requests, and says what happens to them. The first rule that fires decides.
    """


@fault.command()
@click.option("--api", metavar="API", help="The name of the API: Produce, Fetch, JoinGroup.")
@click.option("--topic", metavar="TOPIC", help="Only requests, and in their answers the items, of this topic.")
@click.option("--partition", type=click.IntRange(0), metavar="NUMBER", help="Only of this partition.")
@click.option("--group", metavar="GROUP", help="Only of this group.")
@click.option("--transactional-id", metavar="TRANSACTIONAL-ID", help="Only of this transactional id.")
@click.option("--client-id", metavar="ID", help="Only of this client.")
@click.option("--principal", metavar="USER", help="Only of this principal: User:alice.")
@click.option("--nth", type=click.IntRange(1), metavar="NUMBER", help="Only the nth of these requests.")
@click.option("--count", type=click.IntRange(1), metavar="NUMBER", help="Only so many, from the first or nth on.")
@click.option("--probability", type=click.FloatRange(0, 1, min_open=True), metavar="NUMBER", help="Only this share.")
@click.option("--seed", type=int, metavar="NUMBER", help="Seed of --probability, which repeats its choices.")
@click.option("--error", metavar="ERROR", help="Answer with this error: NOT_LEADER_OR_FOLLOWER.")
@click.option("--commit-then-error", metavar="ERROR", help="Execute the request, and answer with this error.")
@click.option("--delay", "delay_s", type=Duration(), metavar="TIME", help="Wait before (500ms).")
@click.option(
    "--drop", type=click.Choice(["before", "after"]), help="Close the connection, before or after the request is done."
)
@click.option("--half", is_flag=True, help="Send half an answer, and close the connection.")
@click.option("--corrupt", is_flag=True, help="Turn a bit in a batch that is fetched.")
@click.option("--throttle", "throttle_s", type=Duration(), metavar="TIME", help="Answer with this throttle time.")
@control_options
@output_option
def add(file: str | None, url: str | None, number: int, output: str, **fields: Any) -> None:
    """Add a rule, and show it.

    \b
    barnabas fault add --api Produce --topic orders --nth 2 --error NOT_LEADER_OR_FOLLOWER
    """
    delay_s, throttle_s = fields.pop("delay_s"), fields.pop("throttle_s")
    fields["delay"] = delay_s
    fields["throttle_ms"] = None if throttle_s is None else round(throttle_s * 1000)
    values = {name: value for name, value in fields.items() if value is not None and value is not False}
    show_fields(_row(perform(file, url, number, "fault_add", values)), output)


@fault.command("list")
@control_options
@output_option
def list_(file: str | None, url: str | None, number: int, output: str) -> None:
    """List the rules, in the order in which they are asked, with how often each has fired."""
    rules = perform(file, url, number, "fault_list")["rules"]
    show_rows([_row(rule) for rule in rules], output, columns=COLUMNS, empty="no fault rules")


@fault.command()
@click.argument("rules", nargs=-1, type=int, metavar="NUMBER...")
@click.option("--all", "is_all", is_flag=True, help="All rules.")
@control_options
def remove(rules: tuple[int, ...], is_all: bool, file: str | None, url: str | None, number: int) -> None:
    """Remove rules by their numbers, or all."""
    if is_all == bool(rules):
        raise click.UsageError("give the numbers of rules, or --all")
    for rule in rules:
        perform(file, url, number, "fault_remove", {"rule": rule})
    if is_all:
        perform(file, url, number, "fault_remove", {})
    click.echo("all rules removed" if is_all else f"removed {', '.join(map(str, rules))}")


def _row(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule as a row: which requests it concerns in one column."""
    rest = {"rule", "action", "seen", "hits", "held"}
    texts = [
        f"{name}={value}" for name, value in rule.items() if name not in rest and (name, value) != ("probability", 1)
    ]
    return {
        "rule": rule["rule"],
        "requests": " ".join(texts) or "all",
        "action": rule["action"],
        "hits": rule["hits"],
        "seen": rule["seen"],
        "held": rule["held"],
    }
