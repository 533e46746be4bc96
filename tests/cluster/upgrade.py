"""A rolling upgrade between two versions of ours, and back: `python -m tests.cluster.upgrade --from REF [--seed N]`.

Three brokers and a controller of the old version (a git worktree of REF) serve idempotent and transactional writers,
groups of both protocols and a share group. The nodes are replaced one by one by nodes of this version on the same
directories and ports, the controller last, and then by the old ones again, the controller first. REF is by default the
previous release: the newest tag `v*` before this commit, or, before there is one, the first version with a cluster.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.exactly_once.share_run import SHARE_BROKER
from tests.cluster.load.loads import Copies, Load
from tests.cluster.rolling import Outcome, Rolling, Step, end_in_order
from tests.support.cluster.clusters import Cluster
from tests.support.processes.server import ROOT, Server

FIRST_WITH_CLUSTER = "060966e114b5b1af05dc6cb1c4eddcbd76cb50de"
LOADS = {
    "classic": {"client": "confluent"},
    "consumer": {"client": "confluent", "protocol": "consumer"},
    "share": {"client": "confluent", "protocol": "share"},
    "java": {"client": "java"},
}
"""Loads by name. java needs a JDK and Maven; the others are the default."""


class NoSuchVersionError(Exception):
    """The version is not in this clone: it is shallow, or no clone at all."""


def git(*arguments: str) -> str:
    """The output of a git command in this checkout. NoSuchVersionError if it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise NoSuchVersionError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        raise NoSuchVersionError(error.stderr.strip() or f"git {arguments[0]} has failed") from None
    return done.stdout.strip()


def previous() -> str:
    """The commit of the previous release. NoSuchVersionError if this clone does not have it."""
    try:
        tag = git("describe", "--tags", "--match", "v*", "--abbrev=0", "HEAD^")
    except NoSuchVersionError:
        tag = FIRST_WITH_CLUSTER
    return git("rev-parse", "--verify", f"{tag}^{{commit}}")


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """A worktree of a commit, removed at the end."""
    path = folder / "old"
    git("worktree", "add", "--detach", str(path), commit)
    try:
        yield path
    finally:
        git("worktree", "remove", "--force", str(path))


class Versions:
    """A cluster whose nodes run one of two checkouts."""

    def __init__(self, cluster: Cluster, old: Path) -> None:
        self.cluster, self.old = cluster, old
        for node in cluster.nodes:
            node.checkout = old

    def steps(self) -> list[Step]:
        """Brokers first and the controller last; back in the other order, as an operator would do both."""
        brokers = list(self.cluster.brokers.items())
        controllers = list(self.cluster.quorum.servers.items())
        there = [(f"{name} to the new version", node, ROOT) for name, node in _named(brokers, controllers)]
        back = [(f"{name} to the old version", node, self.old) for name, node in _named(brokers, controllers)[::-1]]
        return [(what, lambda node=node, to=to: _replace(node, to)) for what, node, to in there + back]


def _named(brokers: list[tuple[int, Server]], controllers: list[tuple[int, Server]]) -> list[tuple[str, Server]]:
    return [
        *((f"broker {number}", node) for number, node in brokers),
        *((f"controller {number}", node) for number, node in controllers),
    ]


def _replace(node: Server, checkout: Path) -> None:
    """Stop a node in order, and start the other version on its directory and port."""
    code = node.stop()
    if code != 0:
        raise RuntimeError(f"{node.data_dir.name} ended with {code}:\n{node.log()[-2000:]}")
    node.checkout = checkout
    node.restart()


def run(commit: str, folder: Path, seed: int, names: list[str], rate: int) -> Outcome:
    """One run: there and back."""
    with checkout(commit, folder) as old:
        cluster = Cluster(folder / "cluster", config=SHARE_BROKER)
        versions = Versions(cluster, old)
        with cluster:
            loads: list[Load] = [
                Copies(name, cluster, folder, seed * 10 + number, rate=rate, **LOADS[name])
                for number, name in enumerate(names)
            ]
            return Rolling(cluster.bootstrap, loads, seed)(
                versions.steps(),
                lambda: {number: node.data_dir for number, node in cluster.brokers.items()},
                lambda: {node.data_dir.name: node.log() for node in cluster.nodes},
            )


def main(arguments: list[str]) -> int:
    """Run the command; the exit code is 0 without findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.upgrade")
    parser.add_argument("--from", dest="ref", metavar="REF", help="the old version; the previous release")
    parser.add_argument("--loads", default="classic,consumer,share", help=f"some of {','.join(LOADS)}")
    parser.add_argument("--rate", type=int, default=200, help="records per second of each writer")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**16))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    end_in_order()
    try:
        commit = previous() if options.ref is None else git("rev-parse", "--verify", f"{options.ref}^{{commit}}")
    except NoSuchVersionError as error:
        print(f"the old version is not in this clone: {error}", file=sys.stderr)
        return 2
    folder = options.folder or Path(tempfile.mkdtemp(prefix="upgrade-"))
    print(
        f"seed {options.seed}, {commit[:10]} to {git('describe', '--always', '--dirty')} and back, {folder}", flush=True
    )
    outcome = run(commit, folder, options.seed, options.loads.split(","), options.rate)
    outcome.tell()
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
