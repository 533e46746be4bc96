"""Arrays and nullable structs as constructs. KIP-482 (compact counts), KIP-893 (nullable structs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct import RangeError, StreamError
from construct.core import stream_size, stream_tell

from barnabas.wire.codec.primitives import INT8, AnyConstruct, Fixed, FixedBytes, Length, field_name, reading, writing
from barnabas.wire.codec.runtime import SMALL, short_arrays, small_structs

if TYPE_CHECKING:
    from barnabas.wire.codec.emit import BuildGen, ParseGen


class Array(AnyConstruct):
    """A count and that many elements; may be nullable. The count is checked against the remaining bytes."""

    def __init__(self, subcon: Any, length: Length, nullable: bool) -> None:
        super().__init__()
        self.subcon = subcon
        self.length = length
        self.nullable = nullable
        self.min_size = length.min_size
        self.element_size = max(1, subcon.min_size)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.length._parse(stream, context, path)
        if count < 0:
            if not self.nullable:
                raise StreamError("null in a field that is not nullable in this version", path=path)
            return None
        if count * self.element_size > stream_size(stream) - stream_tell(stream, path):
            raise RangeError(f"an array of {count} elements, more than the remaining bytes can hold", path=path)
        return [self.subcon._parse(stream, context, path) for _ in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if obj is None:
            if not self.nullable:
                raise RangeError("null in a field that is not nullable in this version", path=path)
            self.length._build(-1, stream, context, path)
            return obj
        self.length._build(len(obj), stream, context, path)
        for element in obj:
            self.subcon._build(element, stream, context, path)
        return obj

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        target = reader.target
        count = reader.length(self.length.compact, self.length.cell)
        if self.length.compact:
            reader.line(f"{count} -= 1")
        with reader.block(f"if {count} >= 0:"):
            with reader.block(f"if {count} * {self.element_size} > end - pos:"):
                reader.line(f"too_many_elements({count}, {field_name(target)})")
            reader.take(count, field_name(target))
            self._emit_elements(reader, target, count)
        with reader.block("else:"):
            reader.line(f"{target} = None" if self.nullable else f"unexpected_null({field_name(target)})")
        return target

    def _emit_elements(self, reader: ParseGen, target: str, count: str) -> None:
        if isinstance(self.subcon, Fixed):
            letter = self.subcon.cell
            ready = reader.bind(
                tuple([packer.unpack_from for packer in small_structs(letter)]), f"unpack_{len(letter)}"
            )
            with reader.block(f"if {count} < {SMALL}:"):
                reader.line(f"{target} = [*{ready}[{count}](buf, pos)]")
            with reader.block("else:"):
                reader.line(f"{target} = [*Struct(f'>{{{count}}}{letter}').unpack_from(buf, pos)]")
            reader.line(f"pos += {count} * {self.element_size}")
        elif isinstance(self.subcon, FixedBytes):
            size = self.element_size
            reader.line(f"stop = pos + {count} * {size}")
            value = f"buf[at:at + {size}]"
            value = f"bytes({value})" if reader.views else value
            reader.line(f"{target} = [{value} for at in range(pos, stop, {size})]")
            reader.line("pos = stop")
        else:
            items, element = reader.name("items"), reader.name("m")
            reader.line(f"{items} = {target} = []")
            with reader.block(f"for _ in range({count}):"):
                reader.read(self.subcon, element)
                reader.flush()
                reader.line(f"{items}.append({element})")
                reader.pause()

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        source = writer.source
        items, count = writer.name("items"), writer.name("n")
        writer.line(f"{items} = {source}")
        plus = " + 1" if self.length.compact else ""
        with writer.block(f"if {items} is None:"):
            if self.nullable:
                writer.line(f"{count} = {0 if plus else -1}")
                writer.line(f"{items} = ()")
            else:
                writer.line(f"unexpected_null_to_build({field_name(source)})")
        with writer.block("else:"):
            writer.line(f"{count} = len({items}){plus}")
        if self.length.compact and isinstance(self.subcon, Fixed):
            self._emit_build_short(writer, items, count, self.subcon.cell)
        else:
            self._emit_build_any(writer, items, count)
        return source

    def _emit_build_short(self, writer: BuildGen, items: str, count: str, letter: str) -> None:
        """Emits code that writes a short array of numbers and the pending run with one struct.Struct."""
        letters = "".join([cell for cell, _ in writer.cells])
        sources = "".join([f"{pending}, " for _, pending in writer.cells])
        ready = writer.bind(short_arrays(letters, letter), f"pack_{letters.replace('?', 'T')}_{letter}")
        with writer.block(f"if {count} < {SMALL}:"):
            writer.line(f"w({ready}[{count}]({sources}{count}, *{items}))")
        with writer.block("else:"):
            self._emit_build_any(writer, items, count)

    def _emit_build_any(self, writer: BuildGen, items: str, count: str) -> None:
        writer.length(count, self.length.compact, self.length.cell)
        self._emit_build_elements(writer, items)

    def _emit_build_elements(self, writer: BuildGen, items: str) -> None:
        if isinstance(self.subcon, Fixed):
            letter = self.subcon.cell
            ready = writer.bind(tuple([packer.pack for packer in small_structs(letter)]), f"pack_{len(letter)}")
            with writer.block(f"if len({items}) < {SMALL}:"):
                writer.line(f"w({ready}[len({items})](*{items}))")
            with writer.block("else:"):
                writer.line(f"w(Struct(f'>{{len({items})}}{letter}').pack(*{items}))")
            return
        with writer.shared(items):
            element = writer.name("m")
            with writer.loop(f"for {element} in {items}:"):
                writer.write(self.subcon, element)
                writer.flush()
                writer.pause()


class NullableStruct(AnyConstruct):
    """A byte, 1 before a struct and -1 for null (KIP-893); Kafka writes 0 for null in a tagged field."""

    min_size = 1

    def __init__(self, subcon: Any, tagged: bool = False) -> None:
        super().__init__()
        self.subcon = subcon
        self.null = 0 if tagged else -1

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return None if INT8._parse(stream, context, path) <= self.null else self.subcon._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        INT8._build(self.null if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj

    def _emitparse(self, code: Any) -> str:
        reader = reading(code)
        target = reader.target
        present = reader.name("n")
        reader.cell("b", present)
        reader.flush()
        with reader.block(f"if {present} <= {self.null}:"):
            reader.line(f"{target} = None")
        with reader.block("else:"):
            reader.read(self.subcon, target)
            reader.flush()
        return target

    def _emitbuild(self, code: Any) -> str:
        writer = writing(code)
        source = writer.source
        writer.flush()
        with writer.block(f"if {source} is None:"):
            writer.cell("b", str(self.null))
            writer.flush()
        with writer.block("else:"):
            writer.cell("b", "1")
            writer.write(self.subcon, source)
            writer.flush()
        return source
