"""The text of a window, read: ``SPAN [every SPAN] [offset DURATION] [in ZONE] [as NAME]``.

A text that cannot be meant is refused with the rule that it breaks and, wherever it can be guessed, the text to write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from stairwise.duration import Duration, unit_meant
from stairwise.errors import DeclarationError, DurationError, NotYetError, WindowError
from stairwise.names import nearest
from stairwise.window import (
    MONDAY,
    MONTHS,
    WEEKDAYS,
    CalendarSpan,
    ConditionWindow,
    CountWindow,
    CumulateWindow,
    FixedSpan,
    ForthcomingWindow,
    SessionWindow,
    Span,
    Unit,
    Window,
    hopping,
    refusal,
    tumbling_seconds,
    within_step,
)
from stairwise.zones import DAY_SECONDS, checked_zone

_RANGE = "range"
_ORDER = (_RANGE, "every", "offset", "in", "as")
_GRAMMAR = "write SPAN [every SPAN] [offset DURATION] [in ZONE] [as NAME]."
_EXAMPLES = "try 5m, 1h every 15m or day in Europe/Paris."
_CALENDAR = MappingProxyType(
    {
        "day": (Unit.DAY, 1),
        "week": (Unit.DAY, 7),
        "month": (Unit.MONTH, 1),
        "quarter": (Unit.MONTH, 3),
        "year": (Unit.MONTH, 12),
    }
)
_ABBREVIATIONS = MappingProxyType(
    {"mo": "month", "mos": "month", "q": "quarter", "qtr": "quarter", "y": "year", "yr": "year", "yrs": "year"}
)
_ROLLING = frozenset(("last", "moving", "past", "rolling", "sliding", "trailing"))
_ADVERBS = MappingProxyType(
    {
        "hourly": "1h",
        "daily": "day",
        "weekly": "week",
        "fortnightly": "2 weeks",
        "monthly": "month",
        "quarterly": "quarter",
        "yearly": "year",
        "annually": "year",
    }
)
_SYNONYMS = MappingProxyType(
    {
        **dict.fromkeys(("each", "per", "by", "slide", "sliding", "hop", "hopping", "step"), "every"),
        **dict.fromkeys(("at", "shift", "shifted", "plus"), "offset"),
        **dict.fromkeys(("zone", "tz", "timezone"), "in"),
        **dict.fromkeys(("starting", "beginning", "on", "of"), "from"),
        **dict.fromkeys(("named", "called", "name"), "as"),
        **{adverb: f"every {span}" for adverb, span in _ADVERBS.items()},
    }
)
_WORDS = frozenset({*_ORDER, *_CALENDAR, *(f"{noun}s" for noun in _CALENDAR), *WEEKDAYS, *MONTHS, "to", "date", "from"})
_NUMERIC = frozenset("0123456789+-.")
_LONGEST_REWRITTEN = 16
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_]*")


def parse_window(text: str) -> Window:
    """Returns the window that a text means; a name at its end changes nothing.

    >>> parse_window("year") == parse_window("4 quarters every 12 months")
    True
    >>> str(parse_window("WEEK from Sunday in America/New_York"))
    'week from sunday in America/New_York'

    Raises:
        DeclarationError: The text is not a window: WindowError, DurationError or ZoneError, by the wrong part.
    """
    return parse_named(text)[0]


def parse_named(text: str) -> tuple[Window, str | None]:
    """Returns the window that a text means, and the name that it gives it.

    >>> parse_named("1h as hourly")
    (FixedWindow(range=3600, slide=3600, origin=0), 'hourly')

    Raises:
        DeclarationError: As `parse_window`.
    """
    forthcoming = forthcoming_window(text)
    if forthcoming is not None:
        raise _not_yet(text, forthcoming)
    try:
        return _parsed(text)
    except (WindowError, DurationError) as error:
        if rewriting := _rewritten(text):
            word, meant = rewriting
            raise refusal(text, f"'{word}' has no meaning here.", f"try {meant}.") from None
        if isinstance(error, DurationError):
            raise
        # The types know a window by its meaning only; the user shall read what was written.
        raise refusal(text, str(error.data["rule"]), error.hint) from None


def table_name(text: str) -> str:
    """Returns the name of the table that holds the window of a text.

    >>> table_name("28 days every day in Europe/Paris")
    '28_days_every_day_in_europe_paris'
    """
    return re.sub("[^a-z0-9]+", "_", text.lower()).strip("_")


def forthcoming_window(text: str) -> ForthcomingWindow | None:
    """Returns the window of a kind that is foreseen, but not yet computed, or None for any other text.

    >>> forthcoming_window("session gap 30m"), forthcoming_window("30m")
    (SessionWindow(gap=1800), None)
    """
    words = " ".join(text.split())
    if session := re.fullmatch("session gap (.+)", words, re.IGNORECASE):
        return SessionWindow(Duration.parse(session[1]).seconds)
    if count := re.fullmatch("([0-9]{1,18}) rows?", words, re.IGNORECASE):
        return CountWindow(int(count[1]))
    if condition := re.fullmatch("from (.+) until (.+)", words, re.IGNORECASE):
        return ConditionWindow(condition[1], condition[2])
    return None


def _not_yet(text: str, window: ForthcomingWindow) -> NotYetError:
    match window:
        case SessionWindow(gap=gap):
            hint = f"for now take windows of a fixed length, such as {Duration(gap)}."
            return NotYetError(f"window '{text}': sessions are not yet computed.", hint=hint, text=text, gap=gap)
        case CountWindow(rows=rows):
            message = f"window '{text}': windows of a number of rows are not yet computed."
            return NotYetError(message, hint="for now take a length of time, such as 5m.", text=text, rows=rows)
        case ConditionWindow(begins=begins, ends=ends):
            message = f"window '{text}': windows between two conditions are not yet computed."
            hint = "for now take a length of time, such as 5m, and aggregates with a condition: sum(x) where CONDITION."
            return NotYetError(message, hint=hint, text=text, begins=begins, ends=ends)
        case _:
            assert_never(window)


def _parsed(text: str) -> tuple[Window, str | None]:
    """The window and its name; an error may name the window by its canonical text."""
    clauses = _clauses(text)
    name = _name(text, clauses["as"]) if "as" in clauses else None
    words = clauses[_RANGE]
    is_growing = tuple(word.lower() for word in words[-2:]) == ("to", "date")
    length = _span(text, words[:-2] if is_growing else words)
    step = _span(text, clauses["every"]) if "every" in clauses else None
    offset = Duration.parse(" ".join(clauses["offset"])).seconds if "offset" in clauses else 0
    zone = checked_zone(" ".join(clauses["in"])) if "in" in clauses else "UTC"
    if "in" in clauses and isinstance(length, FixedSpan) and not (is_growing and isinstance(step, CalendarSpan)):
        raise _zone_of_fixed(text, length, step, zone)
    if is_growing:
        return _growing(text, length, step, offset, zone), name
    if step is not None:
        _check_together(text, length, step)
    if "from" in _lower(words) and isinstance(length, CalendarSpan) and isinstance(step, CalendarSpan):
        _check_anchor(text, length, step)
    _check_offset(text, step or length, offset)
    return hopping(length, step or length, offset, zone), name


def _clauses(text: str) -> Mapping[str, tuple[str, ...]]:
    """The words of each clause, checked to stand in order, each once, none empty."""
    found: dict[str, tuple[str, ...]] = {_RANGE: ()}
    clause = _RANGE
    for word in text.split():
        keyword = word.lower()
        if keyword in _ORDER and keyword != _RANGE and clause != "as":
            if keyword in found:
                raise refusal(text, f"'{keyword}' is given twice.", _GRAMMAR)
            clause = keyword
            found[clause] = ()
        else:
            found[clause] += (word,)
    if not found[_RANGE]:
        raise _no_span(text, " ".join(found.get("every", ())))
    for keyword, words in found.items():
        if not words:
            raise refusal(text, f"nothing follows '{keyword}'.", _GRAMMAR)
    ordered = [keyword for keyword in _ORDER if keyword in found]
    if ordered != list(found):
        rest = "".join(f" {keyword} {' '.join(found[keyword])}" for keyword in ordered[1:])
        candidate = " ".join(found[_RANGE]) + rest
        raise refusal(text, "its parts are out of order.", f"try {candidate}." if _is_legal(candidate) else _GRAMMAR)
    return found


def _no_span(text: str, step: str) -> WindowError:
    if step:
        hint = f"try {step}, or put the range first: SPAN every {step}."
        return refusal(text, "there is no span before 'every'.", hint)
    return refusal(text, "there is no span.", _EXAMPLES)


def _name(text: str, words: tuple[str, ...]) -> str:
    given = " ".join(words)
    if not _NAME.fullmatch(given):
        rule = f"the name '{given}' is not letters, digits and '_', with a letter or digit first."
        raise refusal(text, rule, f"try {table_name(given) or 'by_hour'}.")
    return given


def _growing(text: str, length: Span, step: Span | None, offset: int, zone: str) -> Window:
    if step is None:
        example = "1h" if isinstance(length, FixedSpan) else "day"
        raise refusal(text, "'to date' grows by steps, and there are none.", f"add the steps, such as every {example}.")
    _check_offset(text, length, offset)
    within = within_step(hopping(step, step), offset)
    _check_offset(text, step, within)
    period, rhythm = hopping(length, length, offset, zone), hopping(step, step, within, zone)
    return period if period == rhythm else CumulateWindow(period, rhythm)


def _check_offset(text: str, step: Span, offset: int) -> None:
    """Refuses an offset that may reach the next edge."""
    edges = hopping(step, step)
    shortest, longest = tumbling_seconds(edges)
    if offset >= shortest:
        slide = f"{shortest} s" if shortest == longest else f"at least {shortest} s"
        rest = within_step(edges, offset)
        hint = f"the same edges have offset {Duration(rest)}." if 0 < rest < offset else "leave the offset out."
        raise refusal(text, f"the offset ({offset} s) is not shorter than the slide ({slide}).", hint)


def _check_together(text: str, length: Span, step: Span) -> None:
    """Refuses a fixed length with calendar steps, and the reverse."""
    if isinstance(length, FixedSpan) is isinstance(step, FixedSpan):
        return
    pairs = ((_as_fixed(length), _as_fixed(step)), (_as_calendar(length), _as_calendar(step)))
    candidates = [f"{first} every {second}" for first, second in pairs if first and second]
    tries = " or ".join(candidate for candidate in candidates if _is_legal(candidate))
    general = "make both fixed (28d every 1h) or both calendar spans (28 days every day)."
    kinds = ("fixed", "a calendar span") if isinstance(length, FixedSpan) else ("a calendar span", "fixed")
    raise refusal(text, f"the range is {kinds[0]}, the slide is {kinds[1]}.", f"try {tries}." if tries else general)


def _check_anchor(text: str, length: CalendarSpan, step: CalendarSpan) -> None:
    """Refuses a range that begins elsewhere than its steps."""
    if length.unit is not step.unit or length.anchor % step.count != step.anchor:
        rule = "windows begin where 'every' says, and 'from' before it says otherwise."
        raise refusal(text, rule, "leave 'from' out, or put it behind the span of 'every'.")


def _zone_of_fixed(text: str, length: FixedSpan, step: Span | None, zone: str) -> WindowError:
    """The error for a zone that nothing needs."""
    spans = [_as_calendar(length), *([_as_calendar(step)] if step else [])]
    hint = "leave the zone out, or take a calendar span, as in day in Europe/Paris."
    if all(spans):
        hint = f"try {' every '.join(spans)} in {zone}."
    return refusal(text, "a zone goes with calendar spans, and fixed lengths are the same in every zone.", hint)


def _as_fixed(span: Span) -> str:
    """The text of fixed length for as many days, empty for months."""
    if isinstance(span, FixedSpan):
        return str(span)
    return f"{span.count}d" if span.unit is Unit.DAY else ""


def _as_calendar(span: Span) -> str:
    """The text of a calendar span of as many days, empty for parts of a day."""
    if isinstance(span, CalendarSpan):
        return str(span)
    days, rest = divmod(span.seconds, DAY_SECONDS)
    return "" if rest else str(CalendarSpan(Unit.DAY, days, span.anchor // DAY_SECONDS))


def _span(text: str, words: tuple[str, ...]) -> Span:
    """The span of a range or a slide, with its anchor."""
    small = _lower(words)
    position = small.index("from") if "from" in small else len(small)
    anchors = small[position + 1 :]
    match small[:position]:
        case (noun,) if noun.removesuffix("s") in _CALENDAR:
            return _calendar_span(text, 1, noun.removesuffix("s"), anchors if "from" in small else None)
        case (count, noun) if noun.removesuffix("s") in _CALENDAR and re.fullmatch("[0-9]{1,12}", count):
            return _calendar_span(text, int(count), noun.removesuffix("s"), anchors if "from" in small else None)
        case (duration,) if duration[0].isdigit() and "from" not in small and not _calendar_meant(duration):
            return _fixed_span(text, words[0])
        case _:
            raise _not_a_span(text, words)


def _fixed_span(text: str, word: str) -> FixedSpan:
    if months := re.fullmatch("([0-9]{1,9})M", word):
        candidates = f"{months[1]}m for minutes, or {_calendar_meant(f'{months[1]}mo')}"
        raise refusal(text, f"'{word}' may be minutes or months.", f"try {candidates}.")
    seconds = Duration.parse(word).seconds
    if not seconds:
        raise refusal(text, "a span is at least 1 s.", _EXAMPLES)
    is_weeks = re.fullmatch("[0-9]+w", word) is not None
    return FixedSpan(seconds, MONDAY * DAY_SECONDS if is_weeks else 0)


def _calendar_span(text: str, count: int, noun: str, anchors: tuple[str, ...] | None) -> CalendarSpan:
    unit, size = _CALENDAR[noun]
    if not count:
        raise refusal(text, f"a span is at least 1 {noun}.", f"try {noun}.")
    anchor = MONDAY if noun == "week" else 0
    if anchors is not None:
        anchor = _anchor(text, noun, " ".join(anchors))
    return CalendarSpan(unit, count * size, anchor % (count * size))


def _anchor(text: str, noun: str, given: str) -> int:
    """The first weekday or month of 1970 of that name, as its number."""
    if noun == "day":
        rule = "'from' goes with weeks (a weekday) and with months, quarters and years (a month)."
        raise refusal(text, rule, f"try week from {given}." if given in WEEKDAYS else "try week from sunday.")
    if not given:
        raise refusal(text, "nothing follows 'from'.", f"try {noun} from {'sunday' if noun == 'week' else 'april'}.")
    kind, names = ("weekday", WEEKDAYS) if noun == "week" else ("month", MONTHS)
    if given not in names:
        near = next((name for name in names if name.startswith(given)), None) or nearest(given, names)
        example = near or ("sunday" if noun == "week" else "april")
        hint = f"try {noun} from {example}."
        raise refusal(text, f"'{given}' is not a {kind}.", hint)
    return names.index(given)


def _not_a_span(text: str, words: tuple[str, ...]) -> DeclarationError:
    """The error for words that are neither a duration nor a calendar span."""
    given = " ".join(words)
    if weeks := re.fullmatch("([0-9]{1,9})w from ([a-z]+)", given.lower()):
        hint = f"try {_calendar_meant(f'{weeks[1]}week')} from {weeks[2]}."
        return refusal(text, "'from' goes with calendar spans, and durations are fixed lengths.", hint)
    if meant := _calendar_meant(given.lower()):
        return refusal(text, f"'{given}' is not a span.", f"try {meant}.")
    if given[:1] in _NUMERIC and not set(_lower(words)) & _WORDS:
        try:
            Duration.parse(given)
        except DurationError as error:
            return error
    return refusal(text, f"'{given}' is not a span.", _EXAMPLES)


def _calendar_meant(word: str) -> str:
    """The span to write in place of ``28days``, ``3mo``, ``monthly`` or ``hour``; empty if there is none."""
    slip = re.fullmatch("([0-9]{0,9}) ?([a-z]+)", word)
    if slip is None:
        return ""
    count, noun = slip.groups()
    if noun in _ADVERBS or (not count and unit_meant(noun)):
        return _ADVERBS.get(noun) or f"1{unit_meant(noun)}"
    meant = _ABBREVIATIONS.get(noun) or noun.removesuffix("s")
    if meant not in _CALENDAR and not unit_meant(noun):
        meant = nearest(noun, _CALENDAR)
    if meant not in _CALENDAR:
        return ""
    return meant if count in ("", "1") else f"{count} {meant}s"


def _rewritten(text: str) -> tuple[str, str] | None:
    """A word that no window has, and the legal text with that word replaced or left out; None if there is none."""
    words = text.split()
    if len(words) > _LONGEST_REWRITTEN:
        return None
    for position, word in enumerate(words):
        if word.lower() == "as":
            break
        if word.lower() in _WORDS or not word.isalpha():
            continue
        if word.lower() in _ROLLING:
            return _stepped(word, [*words[:position], *words[position + 1 :]])
        for instead in (_SYNONYMS.get(word.lower(), ""), ""):
            candidate = " ".join((*words[:position], *instead.split(), *words[position + 1 :]))
            if _is_legal(candidate):
                return word, candidate
    return None


def _stepped(word: str, rest: list[str]) -> tuple[str, str] | None:
    """``rolling 7 days in ZONE`` without that word but with a step; None if that is no window either."""
    end = next((place for place, other in enumerate(rest) if other.lower() in {"offset", "in", "as"}), len(rest))
    has_step = "every" in _lower(tuple(rest))
    for step in ("",) if has_step else ("every day", "every 1d", "every 1h", "every 1m"):
        candidate = " ".join((*rest[:end], *step.split(), *rest[end:]))
        if _is_legal(candidate):
            return word, candidate
    return None


def _is_legal(text: str) -> bool:
    try:
        _parsed(text)
    except DeclarationError:
        return False
    return True


def _lower(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)
