"""`python -m barnabas.broker HOST:PORT [key=value ...]`: a broker without the command line, for development."""

from __future__ import annotations

import os
import sys

from barnabas.broker.config.options import ServeOptions
from barnabas.platforms import is_refused


def main() -> int:
    """Serve on the given address with the given config keys."""
    if is_refused():
        return 2
    from barnabas.broker.server import run

    sets = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)
    for address in [argument for argument in sys.argv[1:] if "=" not in argument]:
        sets["listeners"] = f"PLAINTEXT://{address}"
    return run(ServeOptions(sets=sets, environment=os.environ))


if __name__ == "__main__":
    sys.exit(main())
