"""Settings in environment variables, named as in the apache/kafka image.

`KAFKA_NUM_PARTITIONS` sets `num.partitions`: `_` stands for a dot, `__` for `_`, `___` for `-`. `BARNABAS_*` sets keys
under `barnabas.` in the same way. Variables of Kafka's JVM and scripts are recognized and reported as ignored, so that
a compose file for Kafka works unchanged. Source: Kafka 4.4 `KafkaDockerWrapper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

JVM_VARIABLES: Final = frozenset(
    {
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_CMD_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
"""Variables of Kafka's scripts that are not config keys."""

NOT_SETTINGS: Final = frozenset(
    {
        "BARNABAS_BOOTSTRAP_SERVERS",
        "BARNABAS_COLOUR",
        "BARNABAS_COMMAND_CONFIG",
        "BARNABAS_COMPLETION_TIMEOUT",
        "BARNABAS_EXAMPLES",
        "BARNABAS_OUTPUT",
        "BARNABAS_PROFILE",
        "BARNABAS_SPARK_JARS",
        "BARNABAS_TIMEOUT",
        "BARNABAS_USER_PASSWORD",
    }
)
"""Variables of the command line, the tests and the pipeline that are not config keys."""


def settings_from_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the settings by config key, and the variables that are recognized but ignored."""
    settings: dict[str, str] = {}
    ignored: list[str] = []
    for variable, value in sorted(environment.items()):
        if variable in JVM_VARIABLES:
            ignored.append(variable)
        elif variable.startswith("KAFKA_") and len(variable) > len("KAFKA_"):
            settings[key_of(variable.removeprefix("KAFKA_"))] = value
        elif variable.startswith("BARNABAS_") and variable not in NOT_SETTINGS:
            settings[key_of(variable)] = value
    return settings, ignored


def key_of(variable: str) -> str:
    """The config key of a variable, given without its prefix."""
    return variable.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
