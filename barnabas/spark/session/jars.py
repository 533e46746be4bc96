"""The jars of Spark's connectors for Kafka and Avro: given by the user, or downloaded into a cache."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from barnabas.spark.activity import saying
from barnabas.spark.errors import MistakeError
from barnabas.spark.session.maven import JarsUnavailableError, fetch

POM = Path(__file__).with_name("pom.xml")
SPARK = "4.0.0"
PACKAGES = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK},org.apache.spark:spark-avro_2.13:{SPARK}"
"""The value of `spark.jars.packages`; Spark downloads these with their dependencies."""
NEEDED = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")
"""The jars that Kafka needs; spark-avro is only for Avro."""
GIVEN = "BARNABAS_SPARK_JARS"
"""The environment variable with a directory of jars, for machines without a network."""


DOWNLOADING = "downloading Spark's Kafka connector (10 MB, once) with Maven to {}"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory for downloaded jars (XDG cache)."""
    base = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "barnabas" / f"spark-{SPARK}"


def jar_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings that make Spark load the connector: existing jars, or without Maven the packages to download.

    MistakeError if there are no jars and Maven cannot download them.
    """
    if directory := environment.get(GIVEN):
        return {"spark.jars": _joined(_given_directory(Path(directory)))}
    cache = cache_directory(environment)
    if not cache.is_dir() and shutil.which("mvn", path=environment.get("PATH")) is None:
        return {"spark.jars.packages": PACKAGES}
    try:
        with saying(DOWNLOADING.format(cache)) if not cache.is_dir() else nullcontext():
            return {"spark.jars": _joined(sorted(fetch(POM, cache).glob("*.jar")))}
    except OSError as error:
        raise MistakeError(
            f"Spark's Kafka connector cannot be stored in {cache} ({error.strerror}): set XDG_CACHE_HOME to a "
            f"directory with write permission, or {GIVEN} to one with the jars"
        ) from error
    except JarsUnavailableError as error:
        raise MistakeError(
            "Spark's Kafka connector cannot be downloaded (is there a network?): copy its jars from another machine's "
            f"{cache} and set {GIVEN} to their directory; Maven's error: {_last_line(str(error))}"
        ) from error


def _given_directory(directory: Path) -> list[Path]:
    jars = sorted(directory.glob("*.jar"))
    missing = [name for name in NEEDED if not any(jar.name.startswith(name) for jar in jars)]
    if missing:
        raise MistakeError(
            f"{GIVEN} is {directory}, which has no {missing[0]} jar: name a directory with the jars of Spark's Kafka "
            f"connector ({', '.join(NEEDED)})"
        )
    return jars


def _joined(jars: list[Path]) -> str:
    return ",".join(str(jar) for jar in jars)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if "ERROR" in line and len(line) > len("[ERROR] ")]
    return (lines or text.splitlines() or [""])[0][:300]
