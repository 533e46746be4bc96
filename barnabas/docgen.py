"""The pages of `docs/` that follow from the code: configuration, compatibility, states, the keys of the pipeline.

`python -m barnabas.docgen --write` writes them; a test compares what is committed with what this makes.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from barnabas.broker.apis import registry as api
from barnabas.broker.config import profiles
from barnabas.broker.config.group_limits import LIMITS
from barnabas.broker.config.keys import (
    OWN_KEYS,
    controller,
    general,
    groups,
    log,
    network,
    remote,
    replication,
    security,
    share_and_streams,
    transactions,
)
from barnabas.broker.config.keys.resources import GROUP_KEYS
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.coord.groups.classic import states as group_states
from barnabas.coord.groups.consumer import states as consumer_states
from barnabas.coord.groups.modern import states as member_states
from barnabas.coord.groups.share import states as share_group_states
from barnabas.coord.groups.streams import states as streams_states
from barnabas.coord.share_partitions import states as share_states
from barnabas.coord.transactions import states as transaction_states
from barnabas.storage.topic_keys import TOPIC_KEYS
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.configdef import ConfigKey
from barnabas.wire.frame import message_for

Key = ConfigKey[Any]

AREAS: Final[tuple[ModuleType, ...]] = (
    general,
    network,
    log,
    groups,
    share_and_streams,
    transactions,
    replication,
    controller,
    remote,
    security,
)

GENERATED: Final = "<!-- Written by `python -m barnabas.docgen --write`; change the declarations, not this page. -->"


def configuration() -> str:
    """`docs/configuration.md`: every config key."""
    parts = [
        "# Configuration",
        GENERATED,
        _CONFIGURATION_HEAD,
        "## Profiles",
        "`--profile dev` (the default) makes sense of a single node; `--profile kafka` keeps Kafka's defaults.",
        _table(("key", "dev", "kafka"), [(f"`{name}`", value, _kafka_default(name)) for name, value in _dev()]),
        "Under `dev` these are never more than the one broker there is, even when set: "
        + ", ".join(f"`{name}`" for name in sorted(profiles.CLAMPED_IN_DEV))
        + ". Nor is the replication factor that a client asks for when it creates a topic.",
    ]
    if OWN_KEYS:
        parts += ["## Keys of Barnabas' own", _key_table(OWN_KEYS.values())]
    for area in AREAS:
        used = [key for key in _keys_of(area) if key.used]
        if used:
            parts += [f"## {_title(area)}", _purpose(area), _key_table(used)]
    parts += ["## Topics", _key_table(key for key in TOPIC_KEYS.values() if key.used)]
    parts += ["## Configs of groups", _GROUPS_HEAD, _group_table()]
    parts += ["## Known to Kafka, not acted on by Barnabas", _UNUSED_HEAD]
    parts += [f"**{_title(area)}:** {_names(_keys_of(area))}" for area in AREAS]
    parts.append(f"**Topics:** {_names(TOPIC_KEYS.values())}")
    return "\n\n".join(parts) + "\n"


_CONFIGURATION_HEAD = """\
Barnabas takes Kafka's config keys by Kafka's names. A setting is looked for in this order, and the first found holds:

1. the running broker's own dynamic config, then that of all brokers (`kafka-configs`, `barnabas config set`),
2. the command line: `--set key=value`, and the options that stand for keys (`--listen`, `--data-dir`),
3. environment: `KAFKA_NUM_PARTITIONS` is `num.partitions` (`_` is a dot, `__` is `_`, `___` is `-`);
   `BARNABAS_...` is a key under `barnabas.`,
4. the file given with `--config`, in the format of `server.properties`,
5. the profile,
6. Kafka's default.

An unknown key is an error on the command line and a warning elsewhere. A key that Kafka knows and Barnabas does not
act on is named in a warning when it is set; those keys are listed at the end."""

_GROUPS_HEAD = """\
A group has configs of its own, before its first member and after its last: `barnabas config set group NAME KEY=VALUE`.
What it does not set it has from the broker; what it sets must be within the broker's bounds, and counts as far as
they go when they have moved since."""

_UNUSED_HEAD = "Setting one of these is not an error, has no effect, and is named in a warning."


def _dev() -> list[tuple[str, str]]:
    return sorted(profiles.DEV.items())


def _kafka_default(name: str) -> str:
    key = next(key for area in AREAS for key in _keys_of(area) if key.name == name)
    return key.format(key.default) or ""


def _keys_of(area: ModuleType) -> list[Key]:
    return [key for key in vars(area).values() if isinstance(key, ConfigKey)]


def _title(area: ModuleType) -> str:
    return area.__name__.rpartition(".")[2].replace("_", " ").capitalize()


def _purpose(area: ModuleType) -> str:
    return (area.__doc__ or "").split("\n", 1)[0]


def _names(keys: Iterable[Key]) -> str:
    return ", ".join(f"`{key.name}`" for key in keys if not key.used) + "."


def _key_table(keys: Iterable[Key]) -> str:
    rows = [
        (f"`{key.name}`", key.type.lower(), _default_of(key), _valid_of(key), key.dynamic, key.doc)
        for key in sorted(keys, key=lambda key: key.name)
    ]
    return _table(("key", "type", "default", "valid", "update", "what it does"), rows)


def _group_table() -> str:
    rows = []
    for name, key in sorted(GROUP_KEYS.items()):
        limits = LIMITS.get(name)
        default = _default_of(key) if limits is None else f"`{limits.default.name}`"
        bounds = [bound for bound in limits[1:] if bound is not None] if limits is not None else []
        rows.append((f"`{name}`", key.type.lower(), default, " ".join(f"`{bound.name}`" for bound in bounds), key.doc))
    return _table(("key", "type", "default", "bounds", "what it does"), rows)


def _default_of(key: Key) -> str:
    text = key.format(key.default)
    return "" if text is None else f"`{text}`" if text else "empty"


def _valid_of(key: Key) -> str:
    return key.valid.replace("|", "\\|")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


_COMPATIBILITY_HEAD = """\
The measure is Apache Kafka 4.4.0. Of an API that is served every version is served, but for those that Kafka itself
marks unstable; ApiVersions tells these and nothing else."""


def compatibility() -> str:
    """`docs/compatibility.md`: which APIs are served, in which versions."""
    served = []
    missing = []
    for key in ApiKey:
        request_class, _ = message_for(key)
        if not request_class.versions:
            continue
        if key in api.SERVED:
            low, high = api.served_versions(key)
            row = (_api_name(request_class.__name__), str(int(key)), _range(low, high), _range_of(request_class))
            served.append(row)
        else:
            missing.append(f"{_api_name(request_class.__name__)} ({int(key)})")
    features = [(f"`{name}`", _range(low, high)) for name, (low, high) in sorted(SUPPORTED_FEATURES.items())]
    parts = [
        "# Compatibility",
        GENERATED,
        _COMPATIBILITY_HEAD,
        f"## Served: {len(served)} APIs",
        _table(("API", "key", "versions", "of Kafka 4.4.0"), served),
        "## Feature levels",
        _table(("feature", "levels"), features),
        f"## Not served: {len(missing)} APIs",
        ", ".join(missing) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _api_name(class_name: str) -> str:
    return class_name.removesuffix("Request")


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _range_of(request_class: type[Any]) -> str:
    return _range(request_class.min_version, request_class.max_version)


def state_machines() -> str:
    """`docs/states.md`: the states of each coordinator's things, and which follows which."""
    parts = [
        "# States",
        GENERATED,
        "Each machine checks every step against its table; an arrow that is not here cannot happen.",
    ]
    machines: list[tuple[str, type[Enum], dict[Any, frozenset[Any]]]] = [
        ("Classic groups", group_states.GroupState, group_states.PREDECESSORS),
        ("Consumer groups", consumer_states.ConsumerGroupState, consumer_states.PREDECESSORS),
        ("Streams groups", streams_states.StreamsGroupState, streams_states.PREDECESSORS),
        ("Members of consumer and streams groups", member_states.MemberState, member_states.MEMBER_PREDECESSORS),
        ("Transactions", transaction_states.TransactionState, transaction_states.PREDECESSORS),
        ("Share groups", share_group_states.ShareGroupState, share_group_states.PREDECESSORS),
        (
            "Partitions of share groups",
            share_group_states.KeptState,
            share_group_states.KEPT_PREDECESSORS,
        ),
        ("Records of share groups", share_states.RecordState, share_states.PREDECESSORS),
    ]
    for title, declared, predecessors in machines:
        parts += [f"## {title}", (inspect.getdoc(declared) or "").strip(), _diagram(predecessors)]
        for state, text in _documented(declared).items():
            parts += [f"### {state}", text]
    return "\n\n".join(parts) + "\n"


def _diagram(predecessors: dict[Any, frozenset[Any]]) -> str:
    arrows = [
        f"    {before} --> {state}"
        for state, befores in predecessors.items()
        for before in sorted(befores, key=str)
        if before is not state
    ]
    first = next(iter(predecessors))
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *arrows, "```"])


def _documented(declared: type[Enum]) -> dict[str, str]:
    """The text under each member of an enum, by the member's name in pictures."""
    (class_,) = ast.parse(inspect.getsource(declared)).body
    assert isinstance(class_, ast.ClassDef)
    texts: dict[str, str] = {}
    for assignment, text in zip(class_.body, class_.body[1:], strict=False):
        if not (isinstance(assignment, ast.Assign) and isinstance(text, ast.Expr)):
            continue
        (target,) = assignment.targets
        if isinstance(target, ast.Name) and isinstance(text.value, ast.Constant):
            texts[str(declared[target.id])] = inspect.cleandoc(str(text.value.value))
    return texts


_PIPELINE_KEYS_HEAD = """\
What the TOML files of `barnabas pipeline run` may say; [pipeline.md](pipeline.md) explains the jobs. A key that is not
here is a mistake, and is told before anything starts. Keys stand above all `[tables]` of a file, as TOML wants it."""


def pipeline_keys() -> str:
    """`docs/pipeline-keys.md`: every key of every job's file. Needs what the pipeline needs."""
    from barnabas.pipeline.keys import HEAD, sections

    parts = ["# Keys of the pipeline", GENERATED, _PIPELINE_KEYS_HEAD]
    for title, text, rows in sections():
        parts += [title, text, _table(HEAD, rows) if rows else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


PAGES: Final = {
    "configuration.md": configuration,
    "compatibility.md": compatibility,
    "states.md": state_machines,
    "pipeline-keys.md": pipeline_keys,
}
"""Every generated page, by its name under `docs/`."""


def main(arguments: Sequence[str]) -> int:
    """Write the pages with `--write`; without, say which are stale (exit code 1 when one is)."""
    docs = Path(__file__).parent.parent / "docs"
    is_stale = False
    for name, make in PAGES.items():
        page = docs / name
        text = make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        if "--write" in arguments:
            page.write_text(text, encoding="utf-8")
            print(f"wrote {page}")
        else:
            is_stale = True
            print(f"{page} is stale")
    return int(is_stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
