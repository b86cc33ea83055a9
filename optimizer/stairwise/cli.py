"""The command line: ``stairwise plan FILE`` and its options, and the way to the commands of the engine.

Standard output holds the answer, standard error everything else. Exit codes: 0 done, 2 the declaration or the command
is wrong, 3 the run failed, 130 interrupted. What not every call needs is imported where it is needed.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TextIO, TypeGuard

from stairwise.arguments import (
    ENGINE_COMMANDS,
    OWN_COMMANDS,
    Given,
    Own,
    no_command,
    overview,
    own_parser,
    parse,
    plan_parser,
)
from stairwise.codec import encode_error, encode_plan, to_json
from stairwise.command_parser import Parser, parser_of
from stairwise.errors import DeclarationProblems, Problem, StairwiseError, UsageError
from stairwise.measured import Measured
from stairwise.options import Options
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import Estimates, Rollup
from stairwise.workload import Workload

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from stairwise.drift import Counted

STDIN = "<stdin>"  # where the problems of a declaration on standard input are
_INTERRUPTED = 130  # as shells have it: 128 + SIGINT


class Count(Protocol):
    """What an engine brings for ``plan --drift``: the entry point ``counted`` of the group ``stairwise.engine``."""

    def __call__(
        self, rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]
    ) -> tuple[Plan, Counted]:
        """The plan that rules the rollup's tables, and what they hold; the rest says where to look."""
        ...


class Measure(Protocol):
    """What an engine brings for ``plan --measure``: the entry point ``measure`` of the group ``stairwise.engine``."""

    def __call__(
        self, rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]
    ) -> Measured:
        """What there is in the rollup's source; the rest says where to look."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it went."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if _is_configurable(sys.stdout):
        sys.stdout.reconfigure(errors="replace")  # a terminal without box drawing still gets the numbers
    try:
        return _answer(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        return _give_up(error)
    except Exception:  # noqa: BLE001 - whatever it is, it is no answer, which Python's own exit code would be
        traceback.print_exc()
        return StairwiseError.exit_code


def _is_configurable(stream: TextIO) -> TypeGuard[TextIOWrapper]:
    return isinstance(stream, TextIOWrapper)


def _answer(arguments: Sequence[str]) -> int:
    try:
        return _run(arguments)
    except StairwiseError as error:
        if "--json" in arguments:
            print(to_json(encode_error(error)))
        else:
            # A file's problems begin with their places, which editors follow.
            prefix = "" if isinstance(error, DeclarationProblems) else "stairwise: "
            print(f"{prefix}{error}", file=sys.stderr)
        return error.exit_code
    finally:
        sys.stdout.flush()


def _give_up(error: OSError) -> int:
    """End without an answer: standard output takes no more."""
    # What is still buffered must not fail once more when the interpreter exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0  # the reader has seen enough
    print(f"stairwise: cannot write to standard output: {error.strerror}.", file=sys.stderr)
    return StairwiseError.exit_code


def _run(arguments: Sequence[str]) -> int:
    match arguments:
        case [] | ["help" | "-h" | "--help" | "--help-all"]:
            print(overview(), end="")
            return 0
        case ["help" | "-h" | "--help" | "--help-all" as kind, name, *_]:
            return _run([name, "--help-all" if kind == "--help-all" else "--help"])
        case ["-V" | "--version", *_]:
            print(f"stairwise {_version()}")
            return 0
        case ["plan", *rest]:
            return _plan(parse(rest))
        case [name, *rest] if name in ENGINE_COMMANDS:
            return _on_engine(name, _entry("stairwise.commands", name), rest)
        case [name, *rest] if name in OWN_COMMANDS:
            return _own(name, rest)
        case _:
            raise no_command(arguments[0])


def _on_engine(name: str, entry: EntryPoint, rest: Sequence[str]) -> int:
    """Run a command that the package of the engine brings."""
    with _needing_spark(f"'{name}'"):
        command: Callable[[Sequence[str]], int] = entry.load()
        return command(rest)


def _own(name: str, rest: Sequence[str]) -> int:
    """Answer without an engine and without a plan."""
    given = own_parser(name).read(rest, Own())
    if name == "completion":
        from stairwise.completion import script

        print(script(parsers(), given.shell), end="")
    else:
        from stairwise.schema import KINDS, schema

        print("\n".join(KINDS) if given.kind is None else schema(given.kind).rstrip("\n"))
    return 0


def parsers() -> dict[str, Parser]:
    """The parser of each command that is installed, by its name, in the order of the names."""
    from importlib.metadata import entry_points

    found = {name: own_parser(name) for name in OWN_COMMANDS}
    found["plan"] = plan_parser()
    for entry in entry_points(group="stairwise.commands"):
        found[entry.name] = parser_of(partial(_on_engine, entry.name, entry))
    return dict(sorted(found.items()))


def _entry(group: str, name: str) -> EntryPoint:
    """What the package of the engine brings."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        return entry
    raise UsageError(f"'{name}' is not installed.", hint="install Stairwise as a package, with pip.")


@contextmanager
def _needing_spark(what: str) -> Generator[None]:
    """Say what to install where a module of the engine is missing."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"{what} runs on Spark, and Python has no module {error.name}.", hint="pip install 'stairwise[spark]'."
        ) from error


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("stairwise")
    except PackageNotFoundError:
        return "(not installed)"


def _plan(given: Given) -> int:
    options = given.options
    if given.windows == "-":
        return _stream(given, options, _standard_input())
    if given.drift and given.file is not None:
        return _drift(given, _declared(given.file), options)
    workload = _workload(given)
    started = time.perf_counter()
    plan = plan_workload(workload, options)
    _show(given, plan, time.perf_counter() - started)
    return 0


def _drift(given: Given, rollup: Rollup, options: Options) -> int:
    """Whether what tables hold speaks for another plan than the one that they were filled by."""
    from stairwise.drift import drifted, encode_drift, explain_drift

    with _needing_spark("--drift"):
        count: Count = _entry("stairwise.engine", "counted").load()
        plan, counted = count(rollup, master=given.master, remote=given.remote, conf=tuple(given.spark_conf))
    drift = drifted(plan, counted, options)
    print(to_json(encode_drift(drift)) if given.json else explain_drift(drift).rstrip("\n"))
    return 0


def _workload(given: Given) -> Workload:
    """The windows of the file, or those of the command line."""
    if given.file is None:
        return _typed(given, given.windows or "")
    rollup = _declared(given.file)
    workload = Workload.of(rollup)
    if not given.measure:
        return replace(workload, estimates=given.estimates(workload.estimates))
    with _needing_spark("--measure"):
        measure: Measure = _entry("stairwise.engine", "measure").load()
        found = measure(rollup, master=given.master, remote=given.remote, conf=tuple(given.spark_conf))
    known = found.estimates.over(workload.estimates)
    return replace(workload, estimates=given.estimates(known), measured=found)


def _declared(file: str) -> Rollup:
    """The rollup of a file, or of standard input."""
    if file != "-":
        return Rollup.from_file(file)
    from stairwise.yaml_reader import MOST_BYTES

    try:
        content = _standard_input().read(MOST_BYTES + 1)
    except OSError as error:
        problem = UsageError(f"it cannot be read ({error.strerror}).", hint="redirect a file to it.")
        raise DeclarationProblems(STDIN, (Problem(0, 0, problem),)) from error
    return Rollup.from_yaml(content, STDIN)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # the shell's <&-
        raise UsageError("standard input is closed.", hint="redirect a file to it.")
    return sys.stdin.buffer


def _typed(given: Given, windows: str) -> Workload:
    texts = [text.strip() for text in windows.split(",")]
    if "" in texts:
        raise UsageError(f"windows '{windows.strip()}': one of them is empty.", hint="try 5m, 1h.")
    aggregate = "sum" if given.aggregate is None else given.aggregate
    return Workload.of_windows(texts, aggregate, given.estimates(Estimates()))


def _stream(given: Given, options: Options, lines: Iterable[bytes]) -> int:
    """Plan a set of windows a line; a line that is none gets an error in its place, and the rest go on."""
    code = 0
    for line in lines:
        started = time.perf_counter()
        try:
            plan = plan_workload(_typed(given, line.decode(errors="replace")), options)
            document = encode_plan(plan, seconds=time.perf_counter() - started)
        except StairwiseError as error:
            document, code = encode_error(error), UsageError.exit_code
        print(to_json(document), flush=True)
    return code


def _show(given: Given, plan: Plan, seconds: float) -> None:
    if given.out is not None:
        _write(given.out, to_json(encode_plan(plan)) + "\n")
    if given.svg is not None:
        from stairwise.picture import draw

        _write(given.svg, draw(plan))
    if given.json:
        print(to_json(encode_plan(plan, seconds=seconds)))
        return
    from stairwise.explain import explain

    print(explain(plan, is_colored=_is_colored()), end="")


def _is_colored() -> bool:
    """Whether somebody looks, at something that knows colours, and has not asked for none (no-color.org)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}.", hint="choose another place.") from error


if __name__ == "__main__":
    sys.exit(main())
