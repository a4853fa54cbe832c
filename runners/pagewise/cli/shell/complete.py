"""Completion in bash, zsh and fish: click's, corrected for values with colons or commas."""

from __future__ import annotations

import os
from typing import ClassVar

from click.shell_completion import BashComplete, FishComplete, ZshComplete, split_arg_string

# Bash breaks words at colons: a completion must not repeat the part before the last colon.
_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" word kind value
    word="${line##*[[:space:]=]}"
    [[ ${COMP_WORDBREAKS} == *:* && ${word} == *:* ]] && word="${word%%"${word##*:}"}" || word=""
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "${kind}" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"${word}"}") ;;
        esac
    done < <(COMP_WORDS="${line}" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_FISH = """\
function %(complete_func)s
    set -l word (commandline -t)
    for line in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD="$word" \
%(prog_name)s 2>/dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class Bash(BashComplete):
    """Takes the line as it was typed, not in the parts that bash makes of it."""

    source_template: ClassVar[str] = _BASH

    @staticmethod
    def _check_version() -> None:
        """Nothing: `nosort` is the newest thing used, and bash 4.4 of 2016 has it."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the part of the current word before it."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        return (words[1:], "") if line[-1:].isspace() else (words[1:-1], words[-1])


class Fish(FishComplete):
    """Keeps commas that are a part of a value."""

    source_template: ClassVar[str] = _FISH


SHELLS = {"bash": Bash, "zsh": ZshComplete, "fish": Fish}
