"""The text of an aggregate call, taken apart: ``NAME(arguments) [where CONDITION]``.

Arguments and conditions are Spark SQL expressions. They are cut into tokens, never understood: enough to find commas,
parentheses and ``where`` without being fooled by quotes and comments, and to write one expression in one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from stairwise.errors import AggregateError
from stairwise.names import nearest

_LEXEME = re.compile(
    r"""
      (?P<blank> \s+ | --(?:\\\n|[^\r\n])* )
    | (?P<comment> /\* )
    | (?P<quoted> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` )
    | (?P<unclosed> ['"`] )
    | (?P<word> (?<![\w`)\]]) \.[0-9]+(?:[eE][+-]?[0-9]+)?\w* | [0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?\w* | \w+ )
    | (?P<operator> <=> | >>> | [<>!=]= | <> | ![<>] | \|\| | << | >> | -> | => | :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_CLOSERS = {"(": ")", "[": "]"}
_PUNCTUATION = frozenset("()[],")
_JOINERS = frozenset((".", ":", "::", "@", "$", "#", "?", "{", "}"))
_SIGNS = frozenset("+-~!")
# After these an operand begins: a sign is a prefix, and a parenthesis is not a function's.
_KEYWORD = re.compile(
    "and|as|between|case|distinct|div|else|escape|ilike|in|interval|is|like|not|or|regexp|rlike|then|when|where",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An aggregate's text in its parts, each written in the canonical way.

    Attributes:
        text: The whole, as the user wrote it.
        name: In lower case.
        arguments: What stands between the top-level commas.
        condition: What stands after ``where``; None if there is none.
    """

    text: str
    name: str
    arguments: tuple[str, ...]
    condition: str | None

    def __str__(self) -> str:
        """The call in the canonical way."""
        return written(self.name, self.arguments, self.condition)

    def refusal(self, rule: str, hint: str) -> AggregateError:
        """The error that says which rule the call breaks, and what to do."""
        return refusal(self.text, rule, hint)

    def unknown(self, names: Sequence[str]) -> AggregateError:
        """The error for a name that is none of these, with the nearest one as a hint."""
        rule = f"there is no aggregate {self.name}"
        if self.name == "count_if" and self.arguments:
            conditions = [each for each in (self.arguments[0], self.condition) if each is not None]
            both = conditions[0] if len(conditions) == 1 else " and ".join(f"({each})" for each in conditions)
            return self.refusal(rule, f"try {written('count', (), both)}.")
        meant = _OTHER_NAMES.get(self.name) or nearest(self.name, names)
        if not meant:
            return self.refusal(rule, f"the aggregates are {', '.join(dict.fromkeys(names))}.")
        return self.refusal(rule, f"try {written(meant, self.arguments, self.condition)}.")

    def check_expressions(self, count: int, names: Collection[str]) -> None:
        """Refuse the call unless its first ``count`` arguments and its condition are expressions over one row.

        Args:
            count: How many of the arguments are expressions.
            names: The aggregates; none may stand inside another.
        """
        for argument in self.arguments[:count]:
            if argument == "*" or argument.endswith(".*"):
                rule = f"{self.name} takes an expression, not {argument}"
                raise self.refusal(rule, "name a column; count() counts rows.")
            if argument.lower().startswith("distinct "):
                distinct = written("count_distinct", (argument[len("distinct ") :],), self.condition)
                hint = f"try {distinct}." if self.name == "count" else "leave it out; count_distinct counts the values."
                raise self.refusal("distinct is not written before an argument", hint)
        for part in (*self.arguments, self.condition or ""):
            for token, following in pairwise(_tokens(part)):
                if following == "(" and token.lower() in names:
                    rule = f"the aggregate {token.lower()} stands inside {self.name}"
                    raise self.refusal(rule, "aggregate an expression over the source's columns.")

    def read(self, position: int, parameter: Parameter) -> Value:
        """The argument at that position as the parameter; the parameter's default if the call ends before it."""
        if position == len(self.arguments) and parameter.default is not None:
            return parameter.default
        given = self.arguments[position]
        value = parameter.read(given)
        if value is None:
            arguments = [*self.arguments[:position], parameter.example, *self.arguments[position + 1 :]]
            hint = f"try {written(self.name, arguments, self.condition)}."
            raise self.refusal(f"{parameter.rule}, not {given}", hint)
        return value


def written(name: str, arguments: Sequence[str], condition: str | None) -> str:
    """The text of a call made of these parts.

    >>> written("sum", ["tip"], "payment = 'card'")
    "sum(tip) where payment = 'card'"
    """
    call = f"{name}({', '.join(arguments)})"
    return call if condition is None else f"{call} where {condition}"


def canonical(expression: str) -> str:
    """The expression in the one way we write it: equal tokens give equal texts, and the tokens stay as they were.

    Comments go, blanks stand where they help to read, and nothing inside quotes is touched.

    >>> canonical("fare*( 1 -tip ) -- net"), canonical("a- -1"), canonical("note  =  'a  --  b'")
    ('fare * (1 - tip)', 'a - -1', "note = 'a  --  b'")
    """
    return _join(_tokens(expression))


def split(expression: str) -> tuple[str, ...]:
    """What stands between the commas that no parenthesis or bracket holds, each in the canonical way.

    >>> split("x, [0.5, 0.9], coalesce(a, ',')")
    ('x', '[0.5, 0.9]', "coalesce(a, ',')")
    """
    return _split(_tokens(expression))


def parse_call(text: str) -> Call:
    """The parts of an aggregate's text.

    Raises:
        AggregateError: It is not ``NAME(arguments) [where CONDITION]``.

    >>> call = parse_call("SUM( tip )  WHERE note <> 'where )'")
    >>> call.name, call.arguments, call.condition
    ('sum', ('tip',), "note <> 'where )'")
    """
    tokens = _tokens(text)
    _check_statement(text, tokens)
    if len(tokens) < 2 or tokens[1] != "(" or not re.fullmatch(r"[^\W\d]\w*", tokens[0]):
        example = f"{tokens[0]}()" if tokens == ["count"] else "sum(fare), or count() for the number of rows"
        raise refusal(text, "an aggregate is written NAME(arguments) [where CONDITION]", f"try {example}.")
    end = _closing(text, tokens)[1]
    name, arguments = tokens[0].lower(), _arguments(text, tokens[2:end])
    rest = tokens[end + 1 :]
    if rest and rest[0].lower() != "where":
        raise _trailing_error(text, written(name, arguments, None), rest)
    condition = _split(rest[1:])
    if rest and len(condition) != 1:
        hint = f"try {written(name, arguments, None)}, or write one condition, its parts joined by and."
        raise refusal(text, f"where takes one condition, not {len(condition)}", hint)
    return Call(text=text, name=name, arguments=arguments, condition=condition[0] if condition else None)


def refusal(text: str, rule: str, hint: str) -> AggregateError:
    """The error that says which rule an aggregate's text breaks."""
    return AggregateError(f"aggregate {text!r}: {rule}.", hint=hint, text=text)


@dataclass(frozen=True, slots=True)
class Whole:
    """A parameter that is a whole number between two others; without a default it must be given."""

    name: str
    low: int
    high: int
    default: int | None = None

    @property
    def form(self) -> str:
        """How a signature shows it."""
        return self.name

    @property
    def rule(self) -> str:
        """What a legal value is."""
        return f"{self.name} is a whole number from {self.low} to {self.high}"

    @property
    def example(self) -> str:
        """A legal value."""
        return str(self.default or 10)

    def read(self, text: str) -> int | None:
        """The value that the text stands for; None if it is not a legal one."""
        is_short = re.fullmatch("[0-9]{1,9}", text)
        return int(text) if is_short and self.low <= int(text) <= self.high else None


@dataclass(frozen=True, slots=True)
class Ranks:
    """A parameter that is one number from 0 to 1, or a list of such numbers in brackets."""

    name: str
    default: None = None

    @property
    def form(self) -> str:
        """How a signature shows it."""
        return f"{self.name} | [{self.name}, ...]"

    @property
    def rule(self) -> str:
        """What a legal value is."""
        return f"{self.name} is a number from 0 to 1, or a list of such numbers in brackets"

    @property
    def example(self) -> str:
        """A legal value."""
        return "0.95"

    def read(self, text: str) -> Decimal | tuple[Decimal, ...] | None:
        """The value that the text stands for; None if it is not a legal one."""
        if not (text.startswith("[") and text.endswith("]")):
            return _rank(text)
        ranks = [_rank(item) for item in split(text[1:-1])]
        legal = tuple(rank for rank in ranks if rank is not None)
        return legal if ranks and len(legal) == len(ranks) else None


Parameter = Whole | Ranks
Value = int | Decimal | tuple[Decimal, ...]


def value_text(value: Value) -> str:
    """The literal that stands for the value; equal values give equal texts.

    >>> value_text(Decimal("0.50")), value_text((Decimal(0), Decimal("0.9")))
    ('0.5', '[0, 0.9]')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


_OTHER_NAMES = {
    "any": "bool_or",
    "any_value": "first",
    "approx_count_distinct": "approx_distinct",
    "approx_percentile": "quantile",
    "approx_top_k": "top_k",
    "array_agg": "collect_set",
    "average": "avg",
    "collect_list": "collect_set",
    "every": "bool_and",
    "first_value": "first",
    "last_value": "last",
    "mean": "avg",
    "percentile_approx": "quantile",
    "percentile_cont": "percentile",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "var": "var_samp",
    "variance": "var_samp",
}


def _rank(text: str) -> Decimal | None:
    is_number = re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text)
    return Decimal(text) if is_number and Decimal(text) <= 1 else None


def _arguments(text: str, tokens: list[str]) -> tuple[str, ...]:
    arguments = _split(tokens)
    if "" in arguments:
        position = arguments.index("") + 1
        raise refusal(
            text, f"argument {position} of {len(arguments)} is empty", "remove the comma, or write what is missing."
        )
    return arguments


def _check_statement(text: str, tokens: list[str]) -> None:
    if ";" in tokens:
        raise refusal(text, "an expression holds no ';'", "remove it; inside quotes it may stand.")
    lowered = [token.lower() for token in tokens]
    if ("over", "(") in pairwise(lowered):
        raise refusal(
            text, "a window function (over) is no aggregate", "leave over (...) out; the windows are declared apart."
        )


def _trailing_error(text: str, call: str, rest: list[str]) -> AggregateError:
    match [token.lower() for token in rest]:
        case ["filter", "(", "where", _, *_, ")"]:
            rule = "a condition is written where CONDITION, not filter (where CONDITION)"
            return refusal(text, rule, f"try {call} where {_join(rest[3:-1])}.")
        case _:
            rule = f"{rest[0]!r} follows the closing parenthesis, where only a condition may"
            return refusal(text, rule, f"try {call}, or {call} where CONDITION.")


def _closing(text: str, tokens: Sequence[str]) -> dict[int, int]:
    """Where each opening parenthesis or bracket is closed, by position in the tokens."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for position, token in enumerate(tokens):
        if token in _CLOSERS:
            opened.append(position)
        elif token in _CLOSERS.values():
            if not opened or _CLOSERS[tokens[opened[-1]]] != token:
                raise refusal(text, f"{token!r} closes nothing", "check the parentheses and brackets.")
            closing[opened.pop()] = position
    if opened:
        missing = _CLOSERS[tokens[opened[-1]]]
        raise refusal(text, f"{tokens[opened[-1]]!r} is never closed", f"add {missing!r}.")
    return closing


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        lexeme = _LEXEME.match(text, position)
        assert lexeme is not None  # noqa: S101 - the last alternative matches anything
        position = lexeme.end()
        match lexeme.lastgroup:
            case "blank":
                pass
            case "comment":
                position = _end_of_comment(text, lexeme.start())
            case "unclosed":
                raise refusal(text, f"the quote {lexeme[0]} is never closed", f"add the closing {lexeme[0]}.")
            case _:
                tokens.append(lexeme[0])
    return tokens


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise refusal(text, "the comment /* is never closed", "add the closing */.")


def _split(tokens: list[str]) -> tuple[str, ...]:
    if not tokens:
        return ()
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in _CLOSERS) - (token in _CLOSERS.values())
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(_join(part) for part in parts)


def _join(tokens: Sequence[str]) -> str:
    text = ""
    previous, after_prefix = "(", False
    for token in tokens:
        text += token if _touches(previous, token, after_prefix=after_prefix) else f" {token}"
        after_prefix = token in _SIGNS and _expects_operand(previous)
        previous = token
    return text


def _touches(previous: str, token: str, *, after_prefix: bool) -> bool:
    """Whether no blank stands between the two; never so that they would read as one token."""
    if token in _PUNCTUATION and token not in _CLOSERS:
        return True
    if previous in _CLOSERS or previous == ".":
        return True
    holds = after_prefix or previous in _JOINERS
    if token in _CLOSERS:
        return holds or previous in _CLOSERS.values() or (_is_operand(previous) and not _KEYWORD.fullmatch(previous))
    if token in _JOINERS:
        return not _is_operator(previous)
    return holds and not _is_operator(token)


def _expects_operand(previous: str) -> bool:
    return previous in "([," or _is_operator(previous) or _KEYWORD.fullmatch(previous) is not None


def _is_operand(token: str) -> bool:
    return token[0].isalnum() or token[0] in "_'\"`" or (token[0] == "." and len(token) > 1)


def _is_operator(token: str) -> bool:
    return token not in _PUNCTUATION and not _is_operand(token)
