"""What a shell runs to complete our commands and options: made of the parsers, so that it knows what they know."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from stairwise.command_parser import Parser, Reader

_FILES = {"FILE", "FOLDER", "OUT", "PLAN", "TABLE_OR_PATH"}  # metavars of what is in the file system


class Takes(Enum):
    """What comes after an option, or in a place."""

    NOTHING = "nothing"
    TEXT = "text"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """An option, or a place without one.

    Attributes:
        names: Of the option; empty for a place.
        purpose: Its line in the help.
        takes: What comes there.
        words: All that may come there; empty if that is not known.
        is_repeatable: Whether it may come again.
    """

    names: tuple[str, ...]
    purpose: str
    takes: Takes
    words: tuple[str, ...]
    is_repeatable: bool


def script(parsers: Mapping[str, Parser], shell: str) -> str:
    """What a shell is to run, for commands with these parsers; the shell is bash, zsh or fish."""
    commands = {name: tuple(_slots(parser)) for name, parser in parsers.items()}
    purposes = {name: parser.description or "" for name, parser in parsers.items()}
    lines = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands, purposes)
    return "".join(f"{line}\n" for line in lines)


def _slots(parser: Parser) -> Iterator[Slot]:
    for action in parser.actions():
        yield Slot(
            names=tuple(action.option_strings),
            purpose=action.help or "",
            takes=_taken(action),
            words=action.type.words if isinstance(action.type, Reader) else (),
            is_repeatable=action.default == [],
        )


def _taken(action: argparse.Action) -> Takes:
    if action.nargs == 0:
        return Takes.NOTHING
    return Takes.FILE if action.metavar in _FILES else Takes.TEXT


def _options(slots: Iterable[Slot]) -> list[Slot]:
    return [slot for slot in slots if slot.names]


def _places(slots: Iterable[Slot]) -> list[Slot]:
    return [slot for slot in slots if not slot.names]


def _bash(commands: Mapping[str, tuple[Slot, ...]], _purposes: Mapping[str, str]) -> Iterator[str]:
    """For bash from 3.2 on."""
    yield "# bash completion of stairwise"
    yield "_stairwise() {"
    yield "    local IFS=$'\\n' current=${COMP_WORDS[COMP_CWORD]} words= is_file="
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f"        words={_lines([*commands, '--help', '--version'])}"
    yield "    else"
    yield '        case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}" in'
    for name, slots in commands.items():
        for slot in _options(slots):
            if slot.takes is not Takes.NOTHING:
                yield f"        {' | '.join(_quoted(f'{name} {each}') for each in slot.names)}) {_answer(slot)} ;;"
    yield '        *) case "${COMP_WORDS[1]} $current" in'
    for name, slots in commands.items():
        names = [each for slot in _options(slots) for each in slot.names if each.startswith("--")]
        yield f"            {_quoted(f'{name} -')}*) words={_lines(names)} ;;"
    for name, slots in commands.items():
        places = _places(slots)
        if any(place.words or place.takes is Takes.FILE for place in places):
            yield f"            {_quoted(f'{name} ')}*) {_answer(places[0])} ;;"
    yield "            esac ;;"
    yield "        esac"
    yield "    fi"
    yield '    if [ -n "$is_file" ]; then'
    yield "        compopt -o filenames 2>/dev/null"
    yield '        COMPREPLY=($(compgen -f -- "$current"))'
    yield "    else"
    yield '        COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "    fi"
    yield "}"
    yield "complete -F _stairwise stairwise"


def _answer(slot: Slot) -> str:
    """The assignment that makes bash offer what comes in a place."""
    if slot.takes is Takes.FILE:
        return "is_file=yes"
    return f"words={_lines(slot.words)}" if slot.words else ":"


def _lines(words: Iterable[str]) -> str:
    return "$'" + "\\n".join(words) + "'"


def _zsh(commands: Mapping[str, tuple[Slot, ...]], purposes: Mapping[str, str]) -> Iterator[str]:
    yield "#compdef stairwise"
    yield "_stairwise() {"
    yield "    if (( CURRENT == 2 )); then"
    yield "        local -a commands"
    described = (_quoted(f"{name}:{_plain(purposes[name])}") for name in commands)
    yield f"        commands=({' '.join(described)} '--help:show the help' '--version:print the version')"
    yield "        _describe -t commands command commands"
    yield "        return"
    yield "    fi"
    yield "    local command=$words[2] context state state_descr line; typeset -A opt_args"
    yield "    shift words; (( CURRENT-- ))"
    yield '    case "$command" in'
    for name, slots in commands.items():
        specs = [*map(_zsh_option, _options(slots))]
        specs += [f":{_plain(place.purpose)}:{_zsh_values(place)}" for place in _places(slots)]
        yield f"    {name}) _arguments {' '.join(map(_quoted, specs))} ;;"
    yield "    esac"
    yield "}"
    yield "compdef _stairwise stairwise"


def _zsh_option(slot: Slot) -> str:
    star = "*" if slot.is_repeatable else ""
    name = slot.names[-1]
    after = "" if slot.takes is Takes.NOTHING else f":{name.strip('-')}:{_zsh_values(slot)}"
    return f"{star}{name}[{_plain(slot.purpose)}]{after}"


def _zsh_values(slot: Slot) -> str:
    if slot.words:
        return f"({' '.join(slot.words)})"
    return "_files" if slot.takes is Takes.FILE else " "


def _fish(commands: Mapping[str, tuple[Slot, ...]], purposes: Mapping[str, str]) -> Iterator[str]:
    yield "# fish completion of stairwise"
    yield "complete -c stairwise -f"
    yield "complete -c stairwise -n __fish_use_subcommand -l help -d 'show the help'"
    yield "complete -c stairwise -n __fish_use_subcommand -l version -d 'print the version'"
    for name, slots in commands.items():
        yield f"complete -c stairwise -n __fish_use_subcommand -a {name} -d {_quoted(_plain(purposes[name]))}"
        here = f"complete -c stairwise -n '__fish_seen_subcommand_from {name}'"
        for slot in slots:
            named = f" -l {slot.names[-1].strip('-')} -d {_quoted(_plain(slot.purpose))}" if slot.names else ""
            taken = _fish_values(slot)
            if named or taken:
                yield f"{here}{named}{taken}"


def _fish_values(slot: Slot) -> str:
    if slot.words:
        return f" {'-x' if slot.names else '-f'} -a {_quoted(' '.join(slot.words))}"
    match slot.takes:
        case Takes.FILE:
            return " -r -F" if slot.names else " -F"
        case Takes.TEXT:
            return " -x" if slot.names else ""
        case Takes.NOTHING:
            return ""
        case _:
            assert_never(slot.takes)


def _plain(text: str) -> str:
    """A text without what zsh takes for its own signs."""
    return text.translate(
        {ord(each): each_plain for each, each_plain in {":": ",", "[": "(", "]": ")", "\\": "/"}.items()}
    )


def _quoted(text: str) -> str:
    """The text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
