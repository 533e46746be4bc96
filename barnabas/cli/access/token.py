"""`barnabas token`: delegation tokens (KIP-48), with which a program logs in as a user without the user's password."""

from __future__ import annotations

import base64

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.duration import Duration
from barnabas.cli.options.parameters import cluster_options, output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.client.admin.tokens import (
    NOW,
    UNLIMITED,
    create_token,
    expire_token,
    find_token,
    list_tokens,
    renew_token,
)
from barnabas.client.cluster import Cluster
from barnabas.terminal.tables import show_fields, show_rows
from barnabas.terminal.times import iso_time


@click.group(cls=Group)
def token() -> None:
    """Create, list, renew and expire delegation tokens.

    The commands need a log-in of their own with TLS or SASL. With a token a client logs in by SCRAM: its id is the user
    name, its HMAC the password, and the JAAS option is tokenauth=true.
    """


def _principal(user: str) -> str:
    return user if ":" in user else f"User:{user}"


@token.command()
@click.option("--owner", metavar="USER", help="The user of the token.  [default: the user of this command]")
@click.option(
    "--renewer", "renewers", multiple=True, metavar="USER", help="Another user who may renew it; may be repeated."
)
@click.option(
    "--max-lifetime", "max_lifetime_s", type=Duration(), metavar="TIME", help="Until then it can be renewed (7d)."
)
@cluster_options
@output_option
def create(
    owner: str | None, renewers: tuple[str, ...], max_lifetime_s: float | None, cluster: Cluster, output: str
) -> None:
    """Create a token and show it with its HMAC, with which anyone can act as the owner."""
    created = create_token(
        cluster,
        owner=None if owner is None else _principal(owner),
        renewers=[_principal(renewer) for renewer in renewers],
        max_lifetime_ms=UNLIMITED if max_lifetime_s is None else round(max_lifetime_s * 1000),
    )
    fields = {
        "token_id": created.token_id,
        "hmac": base64.b64encode(created.hmac).decode(),
        "owner": created.owner,
        "renewers": list(created.renewers),
        "expiry": iso_time(created.expiry),
        "max_time": iso_time(created.max_time),
    }
    show_fields(fields, output)


@token.command("list")
@click.option("--owner", "owners", multiple=True, metavar="USER", help="Only of this user; may be repeated.")
@cluster_options
@output_option
def list_(owners: tuple[str, ...], cluster: Cluster, output: str) -> None:
    """List the tokens that you may see, without their HMACs."""
    tokens = list_tokens(cluster, [_principal(owner) for owner in owners] or None)
    rows = [
        {
            "token_id": listed.token_id,
            "owner": listed.owner,
            "requester": listed.requester,
            "renewers": list(listed.renewers),
            "issued": iso_time(listed.issued),
            "expiry": iso_time(listed.expiry),
            "max_time": iso_time(listed.max_time),
        }
        for listed in tokens
    ]
    show_rows(rows, output, columns=("token_id", "owner", "renewers", "expiry", "max_time"), empty="no tokens")


@token.command()
@click.argument("token_id", metavar="TOKEN-ID")
@click.option("--for", "period_s", type=Duration(), metavar="TIME", help="How long from now.  [default: the broker's]")
@cluster_options
def renew(token_id: str, period_s: float | None, cluster: Cluster) -> None:
    """Let a token live longer: until its max_time at most."""
    described = find_token(cluster, token_id)
    expiry = renew_token(cluster, described.hmac, UNLIMITED if period_s is None else round(period_s * 1000))
    click.echo(f"token {token_id} expires at {iso_time(expiry)}")


@token.command()
@click.argument("token_id", metavar="TOKEN-ID")
@click.option("--in", "period_s", type=Duration(), metavar="TIME", help="After this time.  [default: at once]")
@yes_option
@cluster_options
def expire(token_id: str, period_s: float | None, yes: bool, cluster: Cluster) -> None:
    """End a token, now or after a time. It asks first."""
    described = find_token(cluster, token_id)
    what = f"token {token_id} of {described.owner}"
    ask_or_refuse(f"End {what}?", f"this ends {what}", yes=yes)
    expiry = expire_token(cluster, described.hmac, NOW if period_s is None else round(period_s * 1000))
    click.echo(f"token {token_id} has ended" if period_s is None else f"token {token_id} ends at {iso_time(expiry)}")
