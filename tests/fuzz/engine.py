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

        fuzz_target = target(name)
    if fuzz_target.prepare is not None:
        fuzz_target.prepare(atheris.instrument_func)
    atheris.Setup([name, f"-max_len={fuzz_target.max_bytes}", *flags], fuzz_target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
