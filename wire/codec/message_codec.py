"""The codec of one message version: a parse and a build function, each compiled from its construct on first use.

A broker only parses requests and builds responses, a client the reverse, so half of the functions are never compiled.
The functions keep no reference to the frame after they return (construct's own `parse` leaves cycles that do).
"""

from __future__ import annotations

from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from barnabas.wire.codec.emit import BuildGen, ParseGen
from barnabas.wire.errors import ProtocolError, TooManyElements

if TYPE_CHECKING:
    from collections.abc import Generator

    from construct import Construct

    from barnabas.wire.codec.fields import Field, StructBase
    from barnabas.wire.types import Chunk

M = TypeVar("M", bound="StructBase")
M_co = TypeVar("M_co", bound="StructBase", covariant=True)
M_contra = TypeVar("M_contra", bound="StructBase", contravariant=True)


class Parse(Protocol[M_co]):
    """Reads the message that starts at `pos`; returns it and the position after it, or raises ProtocolError."""

    def __call__(self, buf: bytes | bytearray | memoryview, pos: int = 0, /) -> tuple[M_co, int]: ...


class ParseWithin(Protocol[M_co]):
    """As Parse; raises TooManyElements before it makes more than `budget` array elements and tagged fields.

    Nested ones are counted too. Each takes at least a byte, so a message of at most `budget` bytes needs no counting.
    """

    def __call__(self, buf: bytes | bytearray | memoryview, pos: int, budget: int, /) -> tuple[M_co, int]: ...


class ParseInSteps(Protocol[M_co]):
    """As ParseWithin; a generator that yields after each element of an array that has no fixed size."""

    def __call__(
        self, buf: bytes | bytearray | memoryview, pos: int, budget: int, /
    ) -> Generator[None, None, tuple[M_co, int]]: ...


class Build(Protocol[M_contra]):
    """Encodes a message in chunks; errors as `Message.encode`."""

    def __call__(self, message: M_contra, /) -> list[Chunk]: ...


class BuildInSteps(Protocol[M_contra]):
    """As Build; a generator that yields after each struct of an array and returns the chunks.

    A list that is an array of several structs, one after the other, is encoded once. The message must not be changed
    meanwhile.
    """

    def __call__(self, message: M_contra, /) -> Generator[None, None, list[Chunk]]: ...


class Codec(Generic[M]):
    """Parses and builds one version of a message: `codec.parse(buf, pos)`, `codec.build(message)`.

    `codec.parse_within(buf, pos, budget)` is for peers that are not trusted, `codec.parse_in_steps(buf, pos, budget)`
    and `codec.build_in_steps(message)` for messages that take too long to parse or build at once.
    """

    __slots__ = (
        "build",
        "build_in_steps",
        "interpreted",
        "message_class",
        "parse",
        "parse_in_steps",
        "parse_within",
        "version",
    )

    parse: Parse[M]
    parse_within: ParseWithin[M]
    parse_in_steps: ParseInSteps[M]
    build: Build[M]
    build_in_steps: BuildInSteps[M]

    def __init__(self, message_class: type[M], version: int, interpreted: Construct[Any, Any]) -> None:
        self.message_class = message_class
        self.version = version
        self.interpreted = interpreted
        self.parse = self._first_parse
        self.parse_within = self._first_parse_within
        self.parse_in_steps = self._first_parse_in_steps
        self.build = self._first_build
        self.build_in_steps = self._first_build_in_steps

    def __repr__(self) -> str:
        return f"<Codec {self.message_class.__name__} v{self.version}>"

    def _first_parse(self, buf: bytes | bytearray | memoryview, pos: int = 0, /) -> tuple[M, int]:
        scope = self._parse_code().run()
        self.parse = scope["parse"]
        return self.parse(buf, pos)

    def _first_parse_within(self, buf: bytes | bytearray | memoryview, pos: int, budget: int, /) -> tuple[M, int]:
        scope = self._parse_code(counts=True).run()
        self.parse_within = scope["parse"]
        return self.parse_within(buf, pos, budget)

    def _first_parse_in_steps(
        self, buf: bytes | bytearray | memoryview, pos: int, budget: int, /
    ) -> Generator[None, None, tuple[M, int]]:
        scope = self._parse_code(counts=True, pauses=True).run()
        self.parse_in_steps = scope["parse"]
        return self.parse_in_steps(buf, pos, budget)

    def _first_build(self, message: M, /) -> list[Chunk]:
        scope = self._build_code().run()
        self.build = scope["build"]
        return self.build(message)

    def _first_build_in_steps(self, message: M, /) -> Generator[None, None, list[Chunk]]:
        scope = self._build_code(pauses=True).run()
        self.build_in_steps = scope["build"]
        return self.build_in_steps(message)

    def source(self) -> str:
        """The generated code, for inspection."""
        return self._parse_code().toString() + self._build_code().toString()

    def _parse_code(self, counts: bool = False, pauses: bool = False) -> ParseGen:
        views = holds_records(self.message_class.declared)
        code = ParseGen(views, counts, pauses)
        code.scope["decode_error"] = self._decode_error
        code.scope["errors"] = (IndexError, struct_error, UnicodeDecodeError, ProtocolError)
        kind = "memoryview" if views else "bytes"
        with code.function("parse(buf, pos, budget)" if counts else "parse(buf, pos=0)"):
            with code.block(f"if type(buf) is not {kind}:"):
                code.line(f"buf = {kind}(buf)")
            code.line("end = len(buf)")
            with code.block("try:"):
                code.read(self.interpreted, "message")
                code.flush()
            with code.block("except errors as error:"):
                code.line("raise decode_error(error) from None")
            with code.block("if pos > end:"):
                code.line("raise decode_error(None)")
            code.pause()  # also without arrays it is a generator
            code.line("return message, pos")
        return code

    def _build_code(self, pauses: bool = False) -> BuildGen:
        with_records = holds_records(self.message_class.declared)
        code = BuildGen(pauses)
        code.scope["encode_error"] = self._encode_error
        code.scope["errors"] = (struct_error, TypeError, AttributeError, UnicodeEncodeError, OverflowError)
        with code.function("build(message)"):
            code.line("out = []")
            code.line("w = out.append")
            if with_records:
                code.line("chunks = []")
            elif pauses:
                code.shares = True
                code.line("seen, made = {}, {}")
            with code.block("try:"):
                code.write(self.interpreted, "message")
                code.flush()
                code.line("last = b''.join(out)")
            with code.block("except errors as error:"):
                code.line("raise encode_error(error) from None")
            code.pause()  # also without arrays it is a generator
            if with_records:
                with code.block("if last or not chunks:"):
                    code.line("chunks.append(last)")
                code.line("return chunks")
            else:
                code.line("return [last]")
        return code

    def _decode_error(self, error: Exception | None) -> ProtocolError:
        if isinstance(error, TooManyElements):
            return error
        why = str(error) if isinstance(error, ProtocolError | UnicodeDecodeError) else "the message is truncated"
        return ProtocolError(f"{self.message_class.__name__} v{self.version}: {why}")

    def _encode_error(self, error: Exception) -> ValueError:
        return ValueError(f"{self.message_class.__name__} v{self.version} cannot be encoded: {error}")


def holds_records(declared: tuple[Field, ...]) -> bool:
    """Whether a message has a `records` field: it is then parsed from a memoryview and built in several chunks."""
    for field in declared:
        if field.kind == "records":
            return True
        if field.struct_class is not None and holds_records(field.struct_class.declared):
            return True
    return False
