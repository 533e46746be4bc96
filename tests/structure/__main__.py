"""`python -m tests.structure` prints the picture of the imports; with `--write` it writes docs/structure.svg."""

from __future__ import annotations

import sys

from tests.structure.picture import Picture
from tests.support.source import ROOT

FILE = ROOT / "docs" / "structure.svg"

if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        FILE.write_text(Picture().svg())
    else:
        print(Picture().svg(), end="")
