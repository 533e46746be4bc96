"""The code generators of compiled codecs: construct's CodeGen, extended to emit statements.

A construct emits code in construct's hooks `_emitparse(code)` and `_emitbuild(code)`. Given one of these generators it
emits statements that assign to `code.target`, or that write the value `code.source`; given construct's own CodeGen
(`construct.compile()`) it raises NotImplementedError, and construct uses the interpreted code.

Values of fixed size are collected by `cell` until `flush` reads or writes the whole run with one struct.Struct. The
length byte of a string or an array, and the count of tagged fields, are the last value of a run.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from construct import core

from barnabas.wire.codec import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator


if TYPE_CHECKING:

    class CodeGen:
        """The methods used of construct's CodeGen, which its stubs do not declare."""

        def append(self, block: str) -> None: ...
        def allocateId(self) -> int: ...  # noqa: N802
        def toString(self) -> str: ...  # noqa: N802
else:
    CodeGen = core.CodeGen


class StatementGen(CodeGen):
    """The common part of both generators: functions, blocks, names, and the objects that the code refers to."""

    def __init__(self, pauses: bool) -> None:
        super().__init__()
        self.pauses = pauses  # whether the function is a generator that yields after each struct of an array
        self._is_nested = False
        self.scope: dict[str, Any] = {
            name: value for name, value in vars(runtime).items() if callable(value) and not name.startswith("_")
        }
        self.scope["new"] = object.__new__
        self.cells: list[tuple[str, str]] = []
        self._lines: list[str] = []
        self._depth = 1
        self._bound: dict[int, str] = {}

    def line(self, text: str) -> None:
        """Emits one statement."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Emits an indented block: `with code.block("if x:")`. No run may be pending at its start or end."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Emits a separate function; code emitted inside the `with` is its body.

        Inside another function the code does not pause: functions for tagged fields are no generators.
        """
        outer = self._lines, self._depth, self.cells, self.pauses, self._is_nested
        self._lines, self._depth, self.cells = [f"def {head}:"], 1, []
        self.pauses, self._is_nested = self.pauses and not self._is_nested, True
        yield
        self.append("\n".join(self._lines))
        self._lines, self._depth, self.cells, self.pauses, self._is_nested = outer

    def pause(self) -> None:
        """Emits a yield, if the code pauses."""
        if self.pauses:
            self.line("yield")

    def name(self, prefix: str) -> str:
        """A new local name."""
        return f"{prefix}{self.allocateId()}"

    def bind(self, value: object, prefix: str) -> str:
        """The global name of an object in the generated code."""
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = self.name(prefix)
            self.scope[name] = value
        return name

    def literal(self, value: object) -> str:
        """An immutable value as source text."""
        return repr(value) if value is None or type(value) in (bool, int, str) else self.bind(value, "value")

    def bind_struct(self, letters: str, method: str) -> str:
        """The name of a method of struct.Struct for a run of cells."""
        name = f"{method}_{letters.replace('?', 'T')}"
        if name not in self.scope:
            self.scope[name] = getattr(struct.Struct(">" + letters), method)
        return name

    def run(self) -> dict[str, Any]:
        """Executes the source; returns the scope with the functions."""
        exec(compile(self.toString(), "<wire codec>", "exec"), self.scope)  # noqa: S102
        return self.scope


class ParseGen(StatementGen):
    """Generates parsing code. Its locals: `buf`, `pos` (the current position) and `end`.

    Code that counts has another one, `budget`: the number of elements that may still be made.
    """

    def __init__(self, views: bool, counts: bool = False, pauses: bool = False) -> None:
        super().__init__(pauses)
        self.views = views  # whether buf is a memoryview (the message holds records), not bytes
        self.counts = counts
        self.target = ""

    def read(self, subcon: Any, target: str) -> None:
        """Emits code that reads one value into `target`."""
        self.target = target
        subcon._emitparse(self)

    def cell(self, letter: str, target: str) -> None:
        """Adds a value of fixed size to the pending run."""
        self.cells.append((letter, target))

    def flush(self) -> None:
        """Emits the pending run."""
        if not self.cells:
            return
        letters = "".join([letter for letter, _ in self.cells])
        targets = ", ".join([target for _, target in self.cells])
        self.cells.clear()
        if letters == "B":
            self.line(f"{targets} = buf[pos]")
        else:
            comma = "" if ", " in targets else ","
            self.line(f"{targets}{comma} = {self.bind_struct(letters, 'unpack_from')}(buf, pos)")
        self.line(f"pos += {struct.calcsize('>' + letters)}")

    def take(self, count: str, name: str) -> None:
        """Emits code that takes the elements of an array, or tagged fields, from the budget before they are made."""
        if self.counts:
            with self.block(f"if {count} > budget:"):
                self.line(f"over_budget({count}, budget, {name})")
            self.line(f"budget -= {count}")

    def length(self, compact: bool, letter: str, long_form: str = "unsigned_varint") -> str:
        """Emits code that reads a length; returns its local. A compact length is still the length + 1."""
        local = self.name("n")
        self.cell("B" if compact else letter, local)
        self.flush()
        if compact:
            with self.block(f"if {local} > 127:"):
                self.line(f"{local}, pos = {long_form}(buf, pos - 1)")
        return local


class BuildGen(StatementGen):
    """Generates building code. Its locals: `out` (a list of bytes), `w` (its append) and, with records, `chunks`."""

    def __init__(self, pauses: bool = False) -> None:
        super().__init__(pauses)
        self.source = ""
        self.shares = False  # whether an array that the structs of another one share is encoded once
        self._loops = 0

    @contextmanager
    def loop(self, head: str) -> Iterator[None]:
        """Emits a loop over the elements of an array."""
        self._loops += 1
        with self.block(head):
            yield
        self._loops -= 1

    @contextmanager
    def shared(self, items: str) -> Iterator[None]:
        """Emits code that writes the array `items`, emitted inside the `with`: once for structs with the same list.

        Only for the arrays of structs of an array that follow one another, in code that pauses. Its locals: `seen`, the
        lists, and `made`, their bytes.
        """
        if not (self.shares and self.pauses and self._loops):
            yield
            return
        start = self.name("start")
        with self.block(f"if {items} is not seen.get({items!r}):"):
            self.line(f"{start} = len(out)")
            yield
            self.line(f"seen[{items!r}] = {items}")
            self.line(f"made[{items!r}] = b''.join(out[{start}:])")
            self.line(f"del out[{start}:]")
        self.line(f"w(made[{items!r}])")

    def write(self, subcon: Any, source: str) -> None:
        """Emits code that writes one value, the expression `source`."""
        self.source = source
        subcon._emitbuild(self)

    def cell(self, letter: str, source: str) -> None:
        """Adds a value of fixed size to the pending run."""
        self.cells.append((letter, source))

    def flush(self) -> None:
        """Emits the pending run."""
        self.flush_keeping()
        self.cells.clear()

    def flush_keeping(self) -> None:
        """Emits the pending run and keeps it pending for the other branch of a condition."""
        if not self.cells:
            return
        letters = "".join([letter for letter, _ in self.cells])
        sources = [source for _, source in self.cells]
        if all(source.lstrip("-").isdigit() for source in sources):
            self.line(f"w({struct.pack('>' + letters, *map(int, sources))!r})")
        else:
            self.line(f"w({self.bind_struct(letters, 'pack')}({', '.join(sources)}))")

    def length(self, local: str, compact: bool, letter: str, long_form: str = "long_length") -> None:
        """Emits code that writes the pending run and a length. A compact length is given as the length + 1."""
        if not compact:
            self.cell(letter, local)
            self.flush()
            return
        with self.block(f"if {local} > 127:"):
            self.flush_keeping()
            self.line(f"w({long_form}({local}))")
        with self.block("else:"):
            self.cell("B", local)
            self.flush()
