"""Sizes and seeds of random tests: small and always the same in `make test`, larger and new ones in `make soak`.

A test takes its size from `how_many` and its seeds from `first_seed` or `seeds`, so it repeats with the same variables:

| variable | how many |
|---|---|
| BARNABAS_SEED | the first seed, 1 unless set; set, it is also the seed of Hypothesis |
| BARNABAS_SEEDS | runs of a simulation |
| BARNABAS_CRASH_STATES | states of a disk after a crash |
| BARNABAS_FAULTS | cases of each history of the fault sweep |
| BARNABAS_FUZZ | mutated frames of the fuzz |
| BARNABAS_EXAMPLES | examples of a property, runs of a model |
| BARNABAS_KILLS | kills of a broker |

As a pytest plugin it sets the seed of Hypothesis, takes the limit of time away where a variable says how large tests
are, and prints the variables, also as the command that repeats a test which has failed. Its import loads the profile of
Hypothesis.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SEED = "BARNABAS_SEED"
SIZES = tuple(f"BARNABAS_{name}" for name in ("SEEDS", "CRASH_STATES", "FAULTS", "FUZZ", "EXAMPLES", "KILLS"))
PROFILE = "volume"
EXAMPLES = 40
"""Of a property that names no number."""


def how_many(variable: str, default: int) -> int:
    """How many: what the variable says, or the size in `make test`. ValueError unless it is a number above 0."""
    assert variable in SIZES, variable
    text = os.environ.get(variable, str(default))
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{variable} must be a number above 0, not {text!r}")
    return int(text)


def first_seed() -> int:
    """The seed of a test, or the first of its seeds."""
    return int(os.environ.get(SEED, "1"))


def seeds(variable: str, default: int) -> range:
    """The seeds of a test that takes one for each run."""
    first, count = first_seed(), how_many(variable, default)
    return range(first, first + count)


def is_sized() -> bool:
    """Whether a variable says how large tests are."""
    return any(name in os.environ for name in SIZES)


def limited(seconds: float) -> pytest.MarkDecorator:
    """The limit of a random test that takes longer than others; it has none if a variable says how large it is."""
    return pytest.mark.timeout(0 if is_sized() else seconds)


def for_each_seed(chosen: Iterable[int], run: Callable[[int], object], variable: str) -> None:
    """Call `run` with each seed. The error of one that fails has a note: what repeats this seed alone."""
    for seed in chosen:
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"repeat this seed with: {SEED}={seed} {variable}=1")
            raise


def replay(variable: str, value: int) -> str:
    """The sentence, to be printed, with the command that repeats a test of one seed and one size."""
    return f"repeat with {SEED}={first_seed()} {variable}={value}"


def given_variables() -> list[str]:
    """`NAME=value` of the variables that are set."""
    return [f"{name}={os.environ[name]}" for name in (SEED, *SIZES) if name in os.environ]


def load_profile() -> None:
    """Load the settings of Hypothesis: the same examples in each run unless there is a seed, and no limits of time."""
    settings.register_profile(
        PROFILE,
        max_examples=how_many("BARNABAS_EXAMPLES", EXAMPLES),
        derandomize=SEED not in os.environ,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile(PROFILE)


load_profile()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis the seed, and large tests no limit, unless options say otherwise."""
    if SEED in os.environ and config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(first_seed())
    if is_sized() and config.getoption("--timeout", None) is None:
        config.option.timeout = 0


def pytest_report_header() -> list[str]:
    """The variables of the run."""
    variables = given_variables()
    return [f"sizes and seeds: {' '.join(variables)}"] if variables else []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the commands that repeat the failed tests, if variables have set their sizes or seeds."""
    failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
    if failed and (variables := given_variables()):
        terminalreporter.section("repeat with", sep="-")
        for nodeid in dict.fromkeys(failed):
            terminalreporter.write_line(f"{' '.join(variables)} python -m pytest {shlex.quote(nodeid)}")
