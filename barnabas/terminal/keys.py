"""Keys of a terminal, one at a time and without echo, and a whole screen to draw on; both end with the block.

Needs termios, which Linux and macOS have. Ctrl-C stays an interrupt. The screen is the terminal's alternate one, so
that what was there before comes back. Only lines that changed are written, which keeps ssh quick.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

ESCAPE_S = 0.05
"""After this time an Escape is the key, not the start of a sequence, seconds."""
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Za-z]|\[\[[A-E])")
_NAMES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[1~": "home", "\x1b[7~": "home", "\x1bOH": "home",
    "\x1b[F": "end", "\x1b[4~": "end", "\x1b[8~": "end", "\x1bOF": "end",
    "\x1b[Z": "back-tab",
    "\x1bOP": "f1", "\x1bOQ": "f2", "\x1bOR": "f3", "\x1bOS": "f4",
    "\x1b[11~": "f1", "\x1b[12~": "f2", "\x1b[13~": "f3", "\x1b[14~": "f4", "\x1b[15~": "f5",
    "\x1b[[A": "f1", "\x1b[[B": "f2", "\x1b[[C": "f3", "\x1b[[D": "f4", "\x1b[[E": "f5",
    "\x1b[17~": "f6", "\x1b[18~": "f7", "\x1b[19~": "f8", "\x1b[20~": "f9", "\x1b[21~": "f10",
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x15": "clear",
}  # fmt: skip


class KeyDecoder:
    """Bytes of a terminal to names of keys; a character that is no special key is its own name."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    @property
    def is_within_escape(self) -> bool:
        """True if the bytes so far may be the start of a sequence."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete."""
        text, self._rest = self._rest + self._decode(data), ""
        keys: list[str] = []
        while text:
            if text[0] != "\x1b":
                keys.append(_NAMES.get(text[0], text[0]))
                text = text[1:]
                continue
            match = _SEQUENCE.match(text)
            if match is None and (len(text) < 2 or (text[1] in "[O" and len(text) < 16)):
                self._rest = text
                break
            sequence = match[0] if match is not None else text[0]
            if name := _NAMES.get(sequence, "escape" if match is None else ""):
                keys.append(name)
            text = text[len(sequence) :]
        return keys

    def flush(self) -> list[str]:
        """The Escape key, if an escape is all that has come."""
        rest, self._rest = self._rest, ""
        return ["escape"] if rest == "\x1b" else []


class FullScreen:
    """The terminal while it is a screen: keys come in, lines go out."""

    def __init__(self, keys_fd: int, screen_fd: int) -> None:
        self._keys_fd = keys_fd
        self._screen_fd = screen_fd
        self._decoder = KeyDecoder()
        self._drawn: list[str] = []
        self._size = (0, 0)

    def size(self) -> tuple[int, int]:
        """Columns and lines, now; 80 x 24 if the terminal does not say."""
        try:
            size = os.get_terminal_size(self._screen_fd)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def keys(self, timeout_s: float) -> list[str]:
        """The keys that were typed, waiting at most `timeout_s` for the first; EOFError if the terminal is gone."""
        timeout_s = ESCAPE_S if self._decoder.is_within_escape else timeout_s
        if not select.select([self._keys_fd], [], [], timeout_s)[0]:
            return self._decoder.flush()
        data = os.read(self._keys_fd, 1024)
        if not data:
            raise EOFError
        return self._decoder.feed(data)

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines, which must not be wider than the screen; the rest of the screen is empty."""
        size = self.size()
        if size != self._size:
            self._drawn, self._size = [], size
            self._write("\x1b[2J")
        shown = list(lines[: size[1]])
        shown += [""] * (size[1] - len(shown))
        changed = [
            f"\x1b[{row + 1};1H{line}\x1b[0m\x1b[K"
            for row, line in enumerate(shown)
            if row >= len(self._drawn) or line != self._drawn[row]
        ]
        self._drawn = shown
        if changed:
            self._write("".join(changed))

    def redraw(self) -> None:
        """Write everything with the next `draw`."""
        self._size = (0, 0)

    def enter(self) -> None:
        """Switch to the alternate screen, without a cursor."""
        self._write("\x1b[?1049h\x1b[?25l\x1b[2J")
        self.redraw()

    def leave(self) -> None:
        """Switch back."""
        self._write("\x1b[0m\x1b[?25h\x1b[?1049l")

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "utf-8", "replace")
        while data:
            data = data[os.write(self._screen_fd, data) :]


@contextmanager
def full_screen() -> Iterator[FullScreen]:
    """The terminal of stdin and stdout as a screen. Ctrl-Z and SIGTERM leave the terminal as it was."""
    import termios
    import tty

    keys_fd, screen_fd = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(keys_fd)
    screen = FullScreen(keys_fd, screen_fd)

    def enter() -> None:
        tty.setcbreak(keys_fd)
        screen.enter()

    def leave() -> None:
        screen.leave()
        termios.tcsetattr(keys_fd, termios.TCSADRAIN, before)

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        raise KeyboardInterrupt

    handlers = {signal.SIGTSTP: stop, signal.SIGTERM: end, signal.SIGHUP: end}
    earlier = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    enter()
    try:
        yield screen
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        leave()
