"""Puts the completion script where a shell finds it, and takes it away again.

fish reads its own directory. bash and zsh read one line of their start-up file, which ends in a mark, so that
installing twice changes nothing and uninstalling finds it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

MARK = "# barnabas completion"
INSTALLED = ("bash", "zsh", "fish")
"""Shells whose start-up file is known."""


class Places:
    """Where the script of a shell is, and the start-up file that reads it (None: the shell finds it)."""

    def __init__(self, shell: str) -> None:
        home = Path.home()
        if shell == "fish":
            config = _directory("XDG_CONFIG_HOME", home / ".config")
            self.script, self.start_up = config / "fish" / "completions" / "barnabas.fish", None
            return
        data = _directory("XDG_DATA_HOME", home / ".local" / "share")
        self.script = data / "barnabas" / f"completion.{shell}"
        self.start_up = _directory("ZDOTDIR", home) / ".zshrc" if shell == "zsh" else home / ".bashrc"

    @property
    def line(self) -> str:
        """The line of the start-up file."""
        path = shlex.quote(str(self.script))
        return f"[ -r {path} ] && . {path}  {MARK}\n"


def install(places: Places, text: str) -> list[str]:
    """Write the script and the line; what was changed, one sentence each."""
    changed = []
    if not places.script.exists() or places.script.read_text() != text:
        places.script.parent.mkdir(parents=True, exist_ok=True)
        places.script.write_text(text)
        changed.append(f"wrote {places.script}")
    if places.start_up is not None and places.line not in _lines(places.start_up):
        remaining = "".join(_without_mark(places.start_up))
        gap = "\n" if remaining and not remaining.endswith("\n") else ""
        places.start_up.parent.mkdir(parents=True, exist_ok=True)
        _write(places.start_up, remaining + gap + places.line)
        changed.append(f"added a line to {places.start_up}")
    return changed


def uninstall(places: Places) -> list[str]:
    """Remove both; what was changed, one sentence each."""
    changed = []
    if places.start_up is not None and _without_mark(places.start_up) != _lines(places.start_up):
        _write(places.start_up, "".join(_without_mark(places.start_up)))
        changed.append(f"removed the line from {places.start_up}")
    if places.script.exists():
        places.script.unlink()
        changed.append(f"removed {places.script}")
    return changed


def _directory(variable: str, default: Path) -> Path:
    configured = Path(os.environ.get(variable) or default)
    return configured if configured.is_absolute() else default


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="surrogateescape").splitlines(keepends=True) if path.exists() else []


def _without_mark(path: Path) -> list[str]:
    return [line for line in _lines(path) if not line.rstrip().endswith(MARK)]


def _write(path: Path, text: str) -> None:
    target = path.resolve()  # a link into a repository of dot files stays a link
    beside = target.with_name(f"{target.name}.barnabas")
    beside.write_text(text, errors="surrogateescape")
    if target.exists():
        beside.chmod(target.stat().st_mode)
    beside.replace(target)
