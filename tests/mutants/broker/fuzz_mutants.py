"""Bugs that the fuzz and the attacks have found, or must find."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ABSURD = "tests/broker/net/test_absurd_requests.py"

FUZZ = (
    Mutant(
        "error-text-longer-than-its-field",
        "wire/errors.py",
        "        self.message = message if message is None else error_text(message)\n",
        "        self.message = message\n",
        _ABSURD + "::test_an_error_that_quotes_the_longest_name_fits_into_its_response",
    ),
    Mutant(
        "markers-replayed-as-records-of-a-coordinator",
        "broker/coordinators/replay.py",
        'replay(key or b"", value, at)\n        return RECORD_COST\n\n'
        "    return lambda batch: _ignore if batch.is_control else replay_record\n",
        'replay(key or b"", value, at)\n        return RECORD_COST\n\n    return lambda _: replay_record\n',
        _ABSURD + "::test_markers_in_a_coordinators_log_are_not_its_records",
    ),
    Mutant(
        "lag-not-bounded",
        "broker/apis/share/share_group_offsets.py",
        "    partition.lag = max(-MAX_LAG, min(lag, MAX_LAG))",
        "    partition.lag = lag",
        _ABSURD + "::test_lag_of_an_absurd_start_offset_can_be_encoded",
    ),
    Mutant(
        "expiry-of-a-commit-not-bounded",
        "coord/groups/offsets.py",
        "min(at.now_ms + retention_ms, MAX_TIMESTAMP)",
        "at.now_ms + retention_ms",
        _ABSURD + "::test_offset_commit_with_an_absurd_retention_time",
    ),
    Mutant(
        "client-texts-not-escaped-in-the-log",
        "broker/start/logging_setup.py",
        "        record.message = escape_controls(record.message)\n",
        "",
        "tests/hostile/test_log_lines.py::test_no_line_is_forged",
    ),
    Mutant(
        "budget-of-elements-not-applied",
        "broker/apis/dispatcher.py",
        "        self._max_elements = broker.config[REQUEST_MAX_ELEMENTS]\n",
        "        self._max_elements = 2**31\n",
        "tests/hostile/test_requests.py::test_offset_commit_of_empty_structs",
    ),
)
