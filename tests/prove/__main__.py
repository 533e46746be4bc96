"""`python -m tests.prove STAGE`: run the evidence and write docs/proof.md; `make prove` sets up what it needs first.

What has passed on this version of the product is not run again, so a stage that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.prove.ledger import ROOT, Ledger, product_version
from tests.prove.page import PAGE, page
from tests.prove.run import Runner, plan
from tests.prove.steps import STAGES, STEPS


def main(arguments: list[str]) -> int:
    """The command; the exit code is 1 if a call failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("stage", nargs="?", choices=STAGES, default="10min")
    parser.add_argument("--step", action="append", choices=[step.name for step in STEPS], help="only this step")
    parser.add_argument("--first-seed", type=int, default=1, help="the seed of the first call of each step")
    parser.add_argument("--jobs", type=int, default=1, help="how many calls run at the same time")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "proof", help="where calls.jsonl is kept")
    parser.add_argument("--page-only", action="store_true", help="run nothing, write the page")
    options = parser.parse_args(arguments)
    steps = [step for step in STEPS if not options.step or step.name in options.step]
    ledger = Ledger(options.folder)
    failed = 0
    try:
        if not options.page_only:
            failed = Runner(ledger, options.jobs)(plan(steps, options.stage, options.first_seed))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
        failed = 1
    PAGE.write_text(page(ledger.calls, product_version()))
    print(f"{failed} calls failed; {PAGE.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
