"""`python -m scripts.pages --write` writes the generated pages of docs/; without `--write` it lists the stale ones."""

from __future__ import annotations

import sys

from scripts.pages.generate import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
