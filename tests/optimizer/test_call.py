"""The text of a call: what is equal, what is refused, and how."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregate import CATALOGUE, Aggregate
from stairwise.call import canonical, parse_call, split
from stairwise.errors import AggregateError


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("fare*2", "fare * 2"),
        ("  fare \n\t*  2 ", "fare * 2"),
        ("a-1", "a - 1"),
        ("a- -1", "a - -1"),
        ("- - 1", "- -1"),
        ("-(a+~b)", "-(a + ~b)"),
        ("case when a then -1 else+b end", "case when a then -1 else +b end"),
        ("x between -1 and-2", "x between -1 and -2"),
        ("a<=b and not(c)", "a <= b and not (c)"),
        ("a<=>b or c<>d", "a <=> b or c <> d"),
        ("x in(1,2)", "x in (1, 2)"),
        ("! = a", "! = a"),
        ("f ( x , y )", "f(x, y)"),
        ("m [ 'k' ] [0] (1)", "m['k'][0](1)"),
        ("t . * ", "t.*"),
        ("a . b.`c d`", "a.b.`c d`"),
        ("v : price :: double", "v:price::double"),
        ("1.5e-3+.5", "1.5e-3 + .5"),
        ("s.1st", "s.1st"),
        ("transform(xs,x->x+1)", "transform(xs, x -> x + 1)"),
        ("cast(x as decimal( 10,2 ))", "cast(x as decimal(10, 2))"),
        ("note='a  --  /* b'", "note = 'a  --  /* b'"),
        (r"note='it\'s  '", r"note = 'it\'s  '"),
        ("note = 'it''s  '", "note = 'it''s  '"),
        ('note = "say ""  \\""', 'note = "say ""  \\""'),
        (r"path=r'C:\'||x", r"path = r'C:\' || x"),
        (r'path=R"C:\"||x', r'path = R"C:\" || x'),
        ("bar'x'", "bar 'x'"),
        ("`a``  b`+1", "`a``  b` + 1"),
        ("a -- one, two)\n + b", "a + b"),
        ("a -- one \\\n two\n + b", "a + b"),
        ("a /* ' /* nested */ , ( */ + b", "a + b"),
        ("größe*2", "größe * 2"),
        ("", ""),
    ],
)
def test_an_expression_is_written_in_one_way(expression: str, expected: str) -> None:
    assert canonical(expression) == expected
    assert canonical(expected) == expected


ATOMS = ("x", "t.y", "f(x, 1)", "'a  b'", "`a b`", "2", "1.5", ".5", "(x)", "a[0]", "r'\\'", "date '2024-01-01'")
BINARY = ("+", "-", "*", "/", "%", "=", "<=", "<>", "<=>", "||", "and", "or", "is", "like", "->", "::", "&", "!=")
PREFIXES = ("", "-", "- ", "~", "not ", "! ", "- -")
BLANKS = st.sampled_from(("", " ", "\n ", "/* , */", " -- x\n"))


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """One expression with the fewest blanks that are safe, and with any."""
    plain = spaced = ""
    for place in range(draw(st.integers(1, 5))):
        operator = draw(st.sampled_from(BINARY)) if place else ""
        prefix, atom = draw(st.sampled_from(PREFIXES)), draw(st.sampled_from(ATOMS))
        plain += f" {operator} {prefix}{atom}"
        spaced += f"{draw(BLANKS)} {operator} {draw(BLANKS)}{prefix}{draw(BLANKS)}{atom}"
    return plain, spaced


@given(spellings())
def test_blanks_and_comments_do_not_matter_and_nothing_else_is_lost(pair: tuple[str, str]) -> None:
    plain, spaced = pair
    assert canonical(plain) == canonical(spaced) == canonical(canonical(plain))
    assert re.sub(r"\s", "", canonical(plain)) == re.sub(r"\s", "", plain)


def test_only_commas_at_the_top_split() -> None:
    assert split("a, f(b, [c, d]), 'e, f', `g,h`") == ("a", "f(b, [c, d])", "'e, f'", "`g,h`")
    assert split(" /* nothing */ ") == ()
    assert split("a,") == ("a", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count()", "count()"),
        ("COUNT( * )", "count()"),
        ("count(1)", "count(1)"),
        ("Sum(tip)Where payment='card'", "sum(tip) where payment = 'card'"),
        ("sum(tip) where (a or b)", "sum(tip) where (a or b)"),
        ("sum(`where (`) where note <> ') where'", "sum(`where (`) where note <> ') where'"),
        ("max(greatest(a,b))", "max(greatest(a, b))"),
        ("min(count)", "min(count)"),
        ("approx_distinct(x, 12)", "approx_distinct(x)"),
        ("approx_distinct(x, 012)", "approx_distinct(x)"),
        ("approx_distinct(x, 14)", "approx_distinct(x, 14)"),
        ("quantile(x, 0.950)", "quantile(x, 0.95)"),
        ("quantile(x, [ .5,0.90, 1. ], 200)", "quantile(x, [0.5, 0.9, 1])"),
        ("quantile(x, [0.5], 400)", "quantile(x, [0.5], 400)"),
        ("percentile(x, 0)", "percentile(x, 0)"),
        ("top_k(x, 10000)", "top_k(x, 10000)"),
    ],
)
def test_a_call_is_written_in_one_way(text: str, expected: str) -> None:
    aggregate = Aggregate.parse(text)
    assert str(aggregate) == expected
    assert Aggregate.parse(expected) == aggregate
    assert hash(Aggregate.parse(expected)) == hash(aggregate)


def test_the_text_of_a_call_is_canonical() -> None:
    assert str(parse_call("F(a,b)where c")) == "f(a, b) where c"


def test_one_rank_and_a_list_of_one_are_two_results() -> None:
    assert Aggregate.parse("quantile(x, 0.5)") != Aggregate.parse("quantile(x, [0.5])")


EVERY_NAME = ", ".join(dict.fromkeys(each.name for each in CATALOGUE))

REFUSED = [
    ("mean(fare)", "there is no aggregate mean", "try avg(fare)"),
    ("stddev(x) where y>1", "there is no aggregate stddev", "try stddev_samp(x) where y > 1"),
    ("variance(x)", "there is no aggregate variance", "try var_samp(x)"),
    ("var(x)", "there is no aggregate var", "try var_samp(x)"),
    ("approx_count_distinct(x)", "there is no aggregate approx_count_distinct", "try approx_distinct(x)"),
    ("percentile_approx(x, 0.5)", "there is no aggregate percentile_approx", "try quantile(x, 0.5)"),
    ("count_if(x > 1)", "there is no aggregate count_if", "try count() where x > 1"),
    ("count_if(x > 1) where y", "there is no aggregate count_if", "try count() where (x > 1) and (y)"),
    ("count_if()", "there is no aggregate count_if", "try count()"),
    ("smu(fare)", "there is no aggregate smu", "try sum(fare)"),
    ("medain(x)", "there is no aggregate medain", "try median(x)"),
    ("zzz(x)", "there is no aggregate zzz", f"the aggregates are {EVERY_NAME}"),
    ("count(distinct x)", "distinct is not written before an argument", "try count_distinct(x)"),
    ("count(DISTINCT(x)) where y", "distinct is not written before an argument", "try count_distinct((x)) where y"),
    (
        "sum(distinct x)",
        "distinct is not written before an argument",
        "leave it out; count_distinct counts the values",
    ),
    ("sum(*)", "sum takes an expression, not *", "name a column; count() counts rows"),
    ("count(t.*)", "count takes an expression, not t.*", "name a column; count() counts rows"),
    ("sum()", "the number of arguments, 0, does not fit sum(x)", "write sum(x)"),
    ("avg(a, b)", "the number of arguments, 2, does not fit avg(x)", "write avg(x)"),
    ("count(a, b)", "the number of arguments, 2, does not fit count() or count(x)", "write count() or count(x)"),
    ("corr(x)", "the number of arguments, 1, does not fit corr(x, y)", "write corr(x, y)"),
    (
        "quantile(x)",
        "the number of arguments, 1, does not fit quantile(x, q | [q, ...][, k])",
        "write quantile(x, q | [q, ...][, k])",
    ),
    (
        "approx_distinct(x, 3) where y",
        "lgk is a whole number from 4 to 21, not 3",
        "try approx_distinct(x, 12) where y",
    ),
    ("approx_distinct(x, y)", "lgk is a whole number from 4 to 21, not y", "try approx_distinct(x, 12)"),
    ("top_k(x, 0)", "k is a whole number from 1 to 10000, not 0", "try top_k(x, 10)"),
    ("top_k(x, 9999999999)", "k is a whole number from 1 to 10000, not 9999999999", "try top_k(x, 10)"),
    ("quantile(x, 0.5, 7)", "k is a whole number from 8 to 65535, not 7", "try quantile(x, 0.5, 200)"),
    (
        "quantile(x, 95)",
        "q is a number from 0 to 1, or a list of such numbers in brackets, not 95",
        "try quantile(x, 0.95)",
    ),
    (
        "percentile(x, -0.5)",
        "q is a number from 0 to 1, or a list of such numbers in brackets, not -0.5",
        "try percentile(x, 0.95)",
    ),
    (
        "quantile(x, [0.5, 2])",
        "q is a number from 0 to 1, or a list of such numbers in brackets, not [0.5, 2]",
        "try quantile(x, 0.95)",
    ),
    (
        "quantile(x, [])",
        "q is a number from 0 to 1, or a list of such numbers in brackets, not []",
        "try quantile(x, 0.95)",
    ),
    ("sum(avg(x))", "the aggregate avg stands inside sum", "aggregate an expression over the source's columns"),
    (
        "sum(x) where x > MAX (y)",
        "the aggregate max stands inside sum",
        "aggregate an expression over the source's columns",
    ),
    (
        "sum(x) filter (where y > 1)",
        "a condition is written where CONDITION, not filter (where CONDITION)",
        "try sum(x) where y > 1",
    ),
    (
        "sum(x) filter",
        "'filter' follows the closing parenthesis, where only a condition may",
        "try sum(x), or sum(x) where CONDITION",
    ),
    (
        "sum(x) as total",
        "'as' follows the closing parenthesis, where only a condition may",
        "try sum(x), or sum(x) where CONDITION",
    ),
    (
        "sum(x) + 1",
        "'+' follows the closing parenthesis, where only a condition may",
        "try sum(x), or sum(x) where CONDITION",
    ),
    (
        "sum(x) over (partition by y)",
        "a window function (over) is no aggregate",
        "leave over (...) out; the windows are declared apart",
    ),
    (
        "sum(lag(x) over (order by t))",
        "a window function (over) is no aggregate",
        "leave over (...) out; the windows are declared apart",
    ),
    (
        "sum(x) where",
        "where takes one condition, not 0",
        "try sum(x), or write one condition, its parts joined by and",
    ),
    (
        "sum(x) where a, b",
        "where takes one condition, not 2",
        "try sum(x), or write one condition, its parts joined by and",
    ),
    ("sum(x); drop table t", "an expression holds no ';'", "remove it; inside quotes it may stand"),
    ("sum(x", "'(' is never closed", "add ')'"),
    ("sum(x[1)", "')' closes nothing", "check the parentheses and brackets"),
    ("sum(x))", "')' closes nothing", "check the parentheses and brackets"),
    ("sum(x,)", "argument 2 of 2 is empty", "remove the comma, or write what is missing"),
    ("sum('x)", "the quote ' is never closed", "add the closing '"),
    ("sum(x /* y)", "the comment /* is never closed", "add the closing */"),
    (
        "",
        "an aggregate is written NAME(arguments) [where CONDITION]",
        "try sum(fare), or count() for the number of rows",
    ),
    (
        "fare",
        "an aggregate is written NAME(arguments) [where CONDITION]",
        "try sum(fare), or count() for the number of rows",
    ),
    ("count", "an aggregate is written NAME(arguments) [where CONDITION]", "try count()"),
    (
        "`sum`(x)",
        "an aggregate is written NAME(arguments) [where CONDITION]",
        "try sum(fare), or count() for the number of rows",
    ),
]


@pytest.mark.parametrize(("text", "rule", "hint"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_is_refused_and_how(text: str, rule: str, hint: str) -> None:
    with pytest.raises(AggregateError) as error:
        Aggregate.parse(text)
    assert str(error.value) == f"aggregate {text!r}: {rule}. Hint: {hint}."
    assert error.value.data == {"text": text}


@pytest.mark.parametrize("hint", [hint for _, _, hint in REFUSED if hint.startswith("try ") and ", or " not in hint])
def test_what_a_hint_says_to_try_is_an_aggregate(hint: str) -> None:
    assert Aggregate.parse(hint.removeprefix("try ")).definition in CATALOGUE


@given(st.text(alphabet="ax1., ()[]'\"`-/*;\\", max_size=20) | st.text(max_size=20))
def test_any_text_is_an_aggregate_or_an_aggregate_error(text: str) -> None:
    for candidate in (text, f"sum({text})", f"sum(x) where {text}", f"quantile(x, {text})"):
        try:
            aggregate = Aggregate.parse(candidate)
        except AggregateError as error:
            assert str(error).startswith("aggregate ")  # noqa: PT017
        else:
            assert Aggregate.parse(str(aggregate)) == aggregate
