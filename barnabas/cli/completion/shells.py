"""The scripts of bash, zsh and fish, and how each shell passes what was typed; PowerShell's is click's own.

They differ from click's in three things: a value that is continued (`key=`) gets no space after it (type `open`),
bash gives the line instead of words, which it would split at `:` and `=`, and commas in help texts are kept.
A failure never writes into the line that is typed: it shows no completions.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    PowerShellComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from barnabas.cli.completion.values import Item, items_for

SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = "_BARNABAS_COMPLETE"

BASH = """\
_barnabas_completion() {
    local type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            plain) printf -v value %%q "$value"; COMPREPLY+=("$value") ;;
            open) compopt -o nospace 2>/dev/null; COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
        esac
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _barnabas_completion %(prog_name)s 2>/dev/null ||
    complete -F _barnabas_completion %(prog_name)s
"""

ZSH = """\
#compdef %(prog_name)s
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
_barnabas_completion() {
    local -a response plain described open
    local type key text
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete ${~words[1]} 2>/dev/null)}")
    for type key text in ${response}; do
        case $type in
            plain) if [[ $text == _ ]]; then plain+=("$key"); else described+=("$key:$text"); fi ;;
            open) open+=("$key") ;;
            dir) _path_files -/ ;;
            file) _path_files ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described
    (( $#plain )) && compadd -V plain -a plain
    (( $#open )) && compadd -S '' -V open -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _barnabas_completion "$@"
else
    compdef _barnabas_completion %(prog_name)s
fi
"""

FISH = """\
function _barnabas_completion
    set -l program (commandline -opc)[1]
    set -l response (COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) \\
        %(complete_var)s=fish_complete $program 2>/dev/null)
    for line in $response
        set -l parts (string split -m1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories (commandline -ct)
            case file
                __fish_complete_path (commandline -ct)
            case plain open
                printf '%%s\\n' $parts[2]
        end
    end
end
complete --command %(prog_name)s --erase
complete --command %(prog_name)s --no-files --keep-order --arguments '(_barnabas_completion)'
"""


class _Completing(ShellComplete):
    """Values of `barnabas.cli.completion.values` before click's own; no completions after an error."""

    def complete(self) -> str:
        try:
            return super().complete()
        except Exception:
            return ""

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        from click.shell_completion import _resolve_context, _resolve_incomplete

        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        resolved, incomplete = _resolve_incomplete(context, args, incomplete)
        # An option that lacks its value makes click drop the arguments: they are parsed again without it.
        if isinstance(resolved, click.Option) and args and args[-1] in resolved.opts:
            context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args[:-1])
        if isinstance(resolved, click.Parameter):
            items = items_for(context, resolved, incomplete)
            if items is not None:
                return items
        return resolved.shell_complete(context, incomplete)


class Bash(_Completing, BashComplete):
    """bash 3.2 and later; before 4.4 values are sorted, and a space follows `key=`."""

    source_template = BASH

    def source(self) -> str:
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        if not line[-1:].isspace():
            return words[1:-1], words[-1]
        return words[1:], ""

    def complete(self) -> str:
        """Without the part of the word before its last `:` or `=`, which bash keeps as words of their own."""
        try:
            args, incomplete = self.get_completion_args()
            breaks = [mark for mark in ":=" if mark in os.environ.get("COMP_WORDBREAKS", ":=")]
            start = max((incomplete.rfind(mark) + 1 for mark in breaks), default=0)
            items = self.get_completions(args, incomplete)
        except Exception:
            return ""
        skipped = 0 if incomplete.startswith("-") else start
        return "\n".join(f"{item.type},{item.value[skipped:]}" for item in items)


class Zsh(_Completing, ZshComplete):
    """zsh 5."""

    source_template = ZSH


class Fish(_Completing, FishComplete):
    """fish 3."""

    source_template = FISH


class PowerShell(_Completing, PowerShellComplete):
    """PowerShell 5.1 and later, with click's script."""

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        completions = super().get_completions(args, incomplete)
        return [Item(item.value, help=item.help) if item.type == "open" else item for item in completions]


for _shell in (Bash, Zsh, Fish, PowerShell):
    add_completion_class(_shell)


def script(shell: str) -> str:
    """The completion script of a shell."""
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    return shell_class(click.Command("barnabas"), {}, "barnabas", VARIABLE).source()
