"""Runs one target under Atheris until the time is over or a finding; started by `__main__` in a process of its own.

Atheris instruments Barnabas' modules as they are imported, so nothing of Barnabas is imported before. It ends its
process with the exit code of libFuzzer.
"""

from __future__ import annotations

import sys

LIBRARIES = ("barnabas", "jwt")


def run(name: str, flags: list[str]) -> None:
    """Fuzz a target; `flags` are flags of libFuzzer, with the directory of its corpus."""
    import atheris

    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=list(LIBRARIES), enable_loader_override=False):
        from tests.fuzz.targets import target

        found = target(name)
    if found.prepare is not None:
        found.prepare(atheris.instrument_func)
    atheris.Setup([name, f"-max_len={found.max_bytes}", *flags], found.check)
    atheris.Fuzz()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
