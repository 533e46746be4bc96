"""Tries one behaviour in this process: `python -m bench.testkits.one_check NAME PLACE`, the place in JSON.

The exit code is 1 if a product behaves in another way than Kafka; a line FAILED says how.
"""

from __future__ import annotations

import json
import sys

from bench.testkits.behaviours import all_behaviours
from bench.testkits.clients import Clients
from bench.testkits.product import Place


def main(name: str, place: str) -> int:
    """Try it."""
    with Clients(Place(**json.loads(place))) as clients:
        try:
            all_behaviours()[name].check(clients)
        except Exception as error:  # whatever it is, it is not what Kafka does
            said = str(error).splitlines()[0] if str(error) else "no message"
            print(f"FAILED {type(error).__name__}: {said}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
