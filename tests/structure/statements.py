"""The statements of a module, also those in functions, classes and blocks.

`ast.walk` visits each expression too, ten nodes for each statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of a statement, of `except` and of `case` that hold statements."""


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is in the blocks of a module or a statement, in the order of the source; `except` and `case` among it."""
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            yield child
            yield from statements(child)
