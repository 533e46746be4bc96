"""kafka-features: show and change the levels of features."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from barnabas.cli.kafka_tools.common import Failed
from barnabas.cli.kafka_tools.errors import text_of
from barnabas.cli.kafka_tools.subcommands import ToolParser, add_server, connect
from barnabas.client.admin.cluster import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, api_versions, update_features
from barnabas.client.cluster import Cluster
from barnabas.client.errors import refusal

NAME = "kafka-features"
METADATA_VERSION = "metadata.version"
RELEASES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
FIRST_LEVEL = 7
"""The levels of metadata.version by their names: RELEASES[0] is level 7 (Kafka's MetadataVersion)."""


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ToolParser(prog=NAME, description="This tool manages feature flags in Kafka.")
    add_server(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("describe", help="Show the features with their levels.")
    for name, what in (("upgrade", "Raise"), ("downgrade", "Lower"), ("disable", "Set to 0")):
        command = commands.add_parser(name, help=f"{what} levels of features.")
        example = "share.version" if name == "disable" else "share.version=2"
        command.add_argument("--feature", action="append", default=[], metavar="FEATURE", help=f"As in {example}.")
        command.add_argument("--dry-run", action="store_true", help="Only have the broker check it.")
        if name != "disable":
            command.add_argument("--metadata", metavar="RELEASE", help="The level of metadata.version, as in 4.4-IV2.")
        if name != "upgrade":
            command.add_argument("--unsafe", action="store_true", help="Also if metadata is lost.")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    if not arguments or (len(arguments) <= 2 and arguments[0] == "--bootstrap-server"):
        print("Command line error: too few arguments. Type --help for help.", file=sys.stderr)
        return 1
    args = make_parser().parse_args(list(arguments))
    try:
        with connect(args) as cluster:
            if args.command == "describe":
                _describe(cluster)
            else:
                _update(cluster, args)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


# --- describe


def _describe(cluster: Cluster) -> None:
    response = api_versions(cluster)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    for supported in sorted(response.supported_features, key=lambda feature: feature.name):
        cells = {
            "Feature": (supported.name, 41),
            "SupportedMinVersion": (_level(supported.name, supported.min_version), 16),
            "SupportedMaxVersion": (_level(supported.name, supported.max_version), 16),
            "FinalizedVersionLevel": (_level(supported.name, levels.get(supported.name, 0)), 16),
            "Epoch": (str(response.finalized_features_epoch), 0),
        }
        print(" ".join(f"{title}: {text:<{width}}" for title, (text, width) in cells.items()))


def _level(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    at = level - FIRST_LEVEL
    return RELEASES[at] if 0 <= at < len(RELEASES) else f"UNKNOWN {level}"


# --- update


def _update(cluster: Cluster, args: argparse.Namespace) -> None:
    kind = UPGRADE if args.command == "upgrade" else UNSAFE_DOWNGRADE if args.unsafe else SAFE_DOWNGRADE
    levels = _levels(args)
    failed = 0
    past = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}[args.command]
    for feature, level in levels.items():
        to = "" if args.command == "disable" else f" to {level}"
        error = refusal(update_features, cluster, {feature: level}, kind, validate_only=args.dry_run)
        if error is not None:
            failed += 1
            what = "Can not" if args.dry_run else "Could not"
            print(f"{what} {args.command} {feature}{to}. {text_of(error)}")
        else:
            print(f"{feature} {'can be' if args.dry_run else 'was'} {past}{to}.")
    if failed:
        raise Failed(f"{failed} out of {len(levels)} operation(s) failed.")


def _levels(args: argparse.Namespace) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in args.feature:
        name, equals, level = text.partition("=")
        if args.command == "disable":
            levels[text] = 0
        elif not equals or not level.isdigit():
            raise Failed(f"Can't parse feature=level string {text}: equals sign and a number are needed")
        else:
            levels[name] = int(level)
    release = getattr(args, "metadata", None)
    if release is not None:
        if release not in RELEASES:
            raise Failed(f"Unknown metadata.version {release}. Supported metadata.version are: {', '.join(RELEASES)}")
        levels[METADATA_VERSION] = RELEASES.index(release) + FIRST_LEVEL
    if not levels:
        raise Failed(f"You must specify at least one feature to {args.command}")
    return levels
