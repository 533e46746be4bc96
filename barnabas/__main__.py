"""`python -m barnabas` is `barnabas`."""

from __future__ import annotations

import sys

from barnabas.cli import main

if __name__ == "__main__":
    sys.exit(main())
