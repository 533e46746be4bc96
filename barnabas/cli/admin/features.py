"""`barnabas features`: the cluster's feature levels (KIP-584, KIP-778), and their upgrade and downgrade."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import cluster_options, output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.client.admin.cluster import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, describe_features, update_features
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import show_rows


@click.group(cls=Group)
def features() -> None:
    """List, upgrade and downgrade the features of a cluster, like transaction.version."""


@features.command("list")
@cluster_options
@output_option
def list_(cluster: Cluster, output: str) -> None:
    """Show each feature's level, and the levels that the broker supports; level 0 is disabled."""
    rows = [feature._asdict() for feature in describe_features(cluster)]
    show_rows(rows, output, empty="the broker has no features")


@features.command()
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--dry-run", is_flag=True, help="Only have the broker check the levels.")
@cluster_options
def upgrade(levels: tuple[str, ...], dry_run: bool, cluster: Cluster) -> None:
    """Raise the level of features.

    \b
    barnabas features upgrade transaction.version=2
    """
    _change(cluster, _levels(levels), UPGRADE, dry_run=dry_run)


@features.command()
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Downgrade also if metadata is lost.")
@click.option("--dry-run", is_flag=True, help="Only have the broker check the levels.")
@yes_option
@cluster_options
def downgrade(levels: tuple[str, ...], unsafe: bool, dry_run: bool, yes: bool, cluster: Cluster) -> None:
    """Lower the level of features; level 0 disables one. It asks first."""
    targets = _levels(levels)
    if not dry_run:
        named = ", ".join(f"{name} to {level}" for name, level in targets.items())
        what = f"{named}{', even if metadata is lost' if unsafe else ''}"
        ask_or_refuse(f"Lower {what}?", f"this lowers {what}", yes=yes)
    _change(cluster, targets, UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE, dry_run=dry_run)


def _levels(texts: tuple[str, ...]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not (name and equals and level.isascii() and level.isdigit()) or int(level) > 32767:
            raise click.BadParameter(f"must be FEATURE=LEVEL with a level from 0, not {text!r}")
        levels[name] = int(level)
    return levels


def _change(cluster: Cluster, levels: dict[str, int], upgrade_type: int, *, dry_run: bool) -> None:
    known = {feature.name: feature.level for feature in describe_features(cluster)}
    for name in levels:
        if name not in known:
            raise NotFound(f"the broker has no feature {name}{suggestion(name, known)}")
    update_features(cluster, levels, upgrade_type, validate_only=dry_run)
    for name, level in levels.items():
        verb = "would be" if dry_run else "is"
        click.echo(f"{name} {verb} at level {level}, before {known[name]}")
    if dry_run:
        note("dry run: nothing was changed")
