"""`barnabas dump-log`: prints the files of a log directory in the format of Kafka's kafka-dump-log."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from barnabas.storage.layout import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from barnabas.terminal.notes import note
from barnabas.tools.dump import decoders, index_files, log_file, state_files
from barnabas.tools.dump.item import Decoder, Item, Options, Problems, UnreadableError

Dump = Callable[[Path, Options, Problems], Iterator[Item]]

FAILED = 1
CHECKPOINTS = (LEADER_EPOCH_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT)
DECODERS = {
    "offsets": "offsets_decoder",
    "transaction-log": "transaction_log_decoder",
    "share-group-state": "share_state_decoder",
    "cluster-metadata": "cluster_metadata_decoder",
}


def decoder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each decoder, with the names of Kafka's tool."""
    topics = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
    for name, topic in reversed(list(zip(DECODERS, topics, strict=True))):
        text = f"Decode records of {topic}; implies --print-data-log."
        command = click.option(f"--{name}-decoder", is_flag=True, help=text)(command)
    return command


@click.command("dump-log")
@click.argument("paths", nargs=-1, metavar="FILE...", type=click.Path(exists=True, path_type=Path))
@click.option("--files", metavar="FILE,FILE", help="The files, in the form of Kafka's tool.")
@click.option("--deep-iteration", is_flag=True, help="Print each record of each batch.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values; implies --deep-iteration.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values of records.")
@click.option("--index-sanity-check", is_flag=True, help="Only check whether a broker would rebuild the indexes.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@click.option(
    "--max-bytes", type=click.IntRange(min=1), metavar="BYTES", help="Stop after this many bytes of each segment."
)
@decoder_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text is the format of Kafka's tool; json has one object per line.",
)
def dump_log(
    paths: tuple[Path, ...],
    files: str | None,
    deep_iteration: bool,
    print_data_log: bool,
    skip_record_metadata: bool,
    index_sanity_check: bool,
    verify_index_only: bool,
    max_bytes: int | None,
    output: str,
    **decoders: bool,
) -> int:
    """Print and check the files of a partition: segments, indexes, snapshots, checkpoints.

    FILE may be a partition's directory, to print all its files. Problems are printed on stderr, and the exit code is
    then 1. With -o json each line is one JSON object.
    """
    chosen = _decoder(decoders)
    options = Options(
        deep=deep_iteration,
        print_data=print_data_log or chosen is not None,
        decode=chosen,
        index_sanity_check=index_sanity_check,
        verify_index_only=verify_index_only,
        skip_record_metadata=skip_record_metadata,
        max_bytes=max_bytes,
    )
    problems = Problems()
    show = _show_json if output == "json" else _show_text
    try:
        for path, dump in list(_dumps((*paths, *_named(files)))):
            show(path, dump(path, options, problems))
    except UnreadableError as error:
        raise click.UsageError(str(error)) from None
    sys.stdout.flush()
    for text in problems.lines():
        note(text)
    return FAILED if problems else 0


def _decoder(flags: dict[str, bool]) -> Decoder | None:
    chosen = [name for name in DECODERS if flags[f"{name.replace('-', '_')}_decoder"]]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]}-decoder and --{chosen[1]}-decoder exclude each other")
    if not chosen:
        return None
    decoder: Decoder = getattr(decoders, DECODERS[chosen[0]])()
    return decoder


def _named(files: str | None) -> list[Path]:
    paths = [Path(name.strip()) for name in (files or "").split(",") if name.strip()]
    for path in paths:
        if not path.exists():
            raise click.UsageError(f"file {str(path)!r} does not exist")
    return paths


def _dumps(paths: Iterable[Path]) -> Iterator[tuple[Path, Dump]]:
    paths = list(paths)
    if not paths:
        raise click.UsageError("name at least one file or a partition's directory")
    for path in paths:
        if path.is_dir():
            yield from _of_directory(path)
            continue
        dump = dump_for(path)
        if dump is None:
            raise UnreadableError(f"{path} is not a file of a log directory")
        yield path, dump


def _of_directory(directory: Path) -> Iterator[tuple[Path, Dump]]:
    dumps = [(path, dump) for path in sorted(directory.iterdir()) if path.is_file() and (dump := dump_for(path))]
    if not dumps:
        raise UnreadableError(f"{directory} has no file of a partition")
    yield from dumps


def dump_for(path: Path) -> Dump | None:
    """The function that prints a file, by its name; None for other names."""
    by_suffix: dict[str, Dump] = {
        LOG_SUFFIX: log_file.dump_log_file,
        ".checkpoint": log_file.dump_log_file,
        INDEX_SUFFIX: index_files.dump_offset_index,
        TIME_INDEX_SUFFIX: index_files.dump_time_index,
        TXN_INDEX_SUFFIX: index_files.dump_txn_index,
        SNAPSHOT_SUFFIX: state_files.dump_producer_snapshot,
    }
    if path.name in CHECKPOINTS:
        return state_files.dump_checkpoint
    if path.name in (PARTITION_METADATA, META_PROPERTIES):
        return state_files.dump_properties
    return by_suffix.get(path.suffix)


def _show_text(path: Path, items: Iterator[Item]) -> None:
    write = sys.stdout.write
    write(f"Dumping {path}\n")
    for item in items:
        write(item.text + "\n")


def _show_json(path: Path, items: Iterator[Item]) -> None:
    write = sys.stdout.write
    for item in items:
        fields = {"file": str(path), "kind": item.kind} | {snake_case(name): _json(item, name) for name in item.fields}
        write(json.dumps(fields, ensure_ascii=False) + "\n")


def _json(item: Item, name: str) -> object:
    value = item.fields[name]
    if isinstance(value, str) and (optional := re.fullmatch(r"OptionalLong(?:\.empty|\[(-?\d+)\])", value)):
        return None if optional[1] is None else int(optional[1])
    return value


def snake_case(name: str) -> str:
    """A name in snake_case, as in all JSON of Barnabas."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1]}", name).lower()
