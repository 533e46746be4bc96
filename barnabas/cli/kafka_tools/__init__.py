"""Kafka's command line tools under their own names: `barnabas kafka-topics --bootstrap-server … --list`.

Options, output and exit codes are those of the tools of Apache Kafka 4.3.1 (the newest that are published); transcripts
in `tests/data/kafka-tools` hold each command to what Kafka's tool prints against the same broker. What differs:

- after a mistake in the options, one sentence and a hint at `--help` replace the whole list of options;
- a broker that does not answer at all is an error at once, not after a minute;
- `BARNABAS_BOOTSTRAP_SERVERS` replaces a missing `--bootstrap-server`.

    arguments.py   options as joptsimple parses them, Kafka's tools' argument parser
    registry.py    the tools by name; each is imported when it is called
"""

from __future__ import annotations
