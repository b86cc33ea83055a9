"""Numbers as people read them: few characters, always a unit, and no size that overflows."""

from __future__ import annotations

from fractions import Fraction
from math import floor, log10

DAY = 86_400
ROUNDING = Fraction(1, 10**9)  # sums of floats in another order differ by less


def quantity(number: float | Fraction) -> str:
    """A number in few characters: whole up to a million, else three digits; no size overflows.

    >>> [quantity(number) for number in (0, 1_234, 1_234.5, 12.345, Fraction(1, 3), 1.2e6, 999_999_999)]
    ['0', '1,234', '1,234', '12.3', '0.333', '1.20 M', '1.00 bn']
    >>> quantity(7**10_000), quantity(0.000_012), quantity(-1.2e6)
    ('9.56e8450', '1.20e-5', '-1.20 M')
    """
    exact = Fraction(number)
    if exact < 0:
        return f"-{quantity(-exact)}"
    if not exact:
        return "0"
    if exact.denominator == 1 and exact < 10**6:
        return f"{exact.numerator:,}"
    exponent, exact = _three_digits(exact)
    if exact < Fraction(1, 1_000) or exact >= 10**15:
        return f"{float(exact / Fraction(10) ** exponent):.2f}e{exponent}"
    if exact < 10**6:
        return f"{float(number):,.{max(0, 2 - exponent)}f}"
    power = exponent // 3 * 3
    name = {6: "M", 9: "bn", 12: "tn"}[power]
    return f"{float(exact / 10**power):.{2 - exponent % 3}f} {name}"


def _three_digits(exact: Fraction) -> tuple[int, Fraction]:
    """The power of ten of a positive number, and the number rounded to three digits, which may reach the next power."""
    exponent = floor(log10(exact.numerator) - log10(exact.denominator)) + 1
    while exact < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent - 2)
    digits = round(exact / unit)
    return (exponent + 1, 1000 * unit) if digits == 1000 else (exponent, digits * unit)


def size(count: float) -> str:
    """Bytes with their unit.

    >>> size(17), size(340_200_000), size(1.5e12), size(-2_000)
    ('17 B', '340 MB', '1.50 TB', '-2.00 kB')
    """
    if count < 0:
        return f"-{size(-count)}"
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    step = 0
    while count >= 999.5 and step < len(units) - 1:
        count, step = count / 1000, step + 1
    digits = 0 if not step or count >= 99.95 else 1 if count >= 9.995 else 2
    return f"{count:,.{digits}f} {units[step]}"


def percent(part: float | Fraction) -> str:
    """A part of one in percent; what is little is not nothing.

    >>> percent(Fraction(1, 3)), percent(0.056), percent(0.000_1), percent(0), percent(11)
    ('33 %', '5.6 %', '< 0.1 %', '0 %', '1,100 %')
    """
    exact = Fraction(part) * 100
    if 0 < exact < Fraction(5, 100):
        return "< 0.1 %"
    return f"{float(exact):.1f} %" if 0 < exact < Fraction(995, 100) else f"{quantity(round(exact))} %"


def beside(cost: float | Fraction, base: float | Fraction) -> str:
    """How a price compares with another; always short.

    >>> beside(112, 100), beside(97, 100), beside(310, 100), beside(100, 100), beside(5, 0)
    ('+12 %', '-3.0 %', '3.1 x', 'the same', 'more')
    >>> beside(100_001, 100_000), beside(99_999, 100_000)
    ('< 0.1 % more', '< 0.1 % less')
    """
    cost, base = Fraction(cost), Fraction(base)
    if abs(cost - base) <= abs(base) * ROUNDING:
        return "the same"
    if base <= 0:
        return "more" if cost > base else "less"
    ratio = cost / base
    if ratio >= 2:
        return f"{quantity(round(ratio)) if ratio >= 10 else format(float(ratio), '.1f')} x"
    shown = percent(abs(ratio - 1))
    if shown.startswith("<"):
        return f"{shown} {'more' if ratio > 1 else 'less'}"
    return f"{'+' if ratio > 1 else '-'}{shown}"


def length_of_time(seconds: int) -> str:
    """A span of time in the largest unit that keeps it whole.

    >>> length_of_time(120), length_of_time(7_200), length_of_time(730 * 86_400)
    ('120 seconds', '2 hours', '730 days')
    """
    for unit, name in ((DAY, "day"), (3_600, "hour")):
        if seconds % unit == 0 and seconds:
            return counted(seconds // unit, name)
    return counted(seconds, "second")


def counted(count: int, noun: str) -> str:
    """That many of something.

    >>> counted(1, "tier"), counted(1_200, "tier")
    ('1 tier', '1,200 tiers')
    """
    return f"{quantity(count)} {noun}{'' if count == 1 else 's'}"


def share(cost: float | Fraction, total: float | Fraction) -> str:
    """A part in percent.

    >>> share(1, 8), share(1, 1_000), share(0, 3), share(0, 0)
    ('12 %', '< 1 %', '0 %', '')
    """
    if not total:
        return ""
    exact = Fraction(cost) / Fraction(total) * 100
    return "< 1 %" if 0 < exact < 1 else f"{quantity(round(exact))} %"
