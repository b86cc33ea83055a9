"""What the planner is asked: windows and aggregates, where they come from, and what is known of the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from stairwise.aggregate import CATALOGUE, Aggregate, Invertibility, Sharing, partial_columns, strictest
from stairwise.batch_cost import BatchModel
from stairwise.call import refusal, written
from stairwise.constants import Constants
from stairwise.cost import CostModel, PaperModel
from stairwise.instant import format_instant
from stairwise.measured import KeyCurve, Measured
from stairwise.options import Options, Pricing
from stairwise.planner import Problem
from stairwise.rollup import DeclaredWindow, Estimates, Layout, Rollup
from stairwise.rules import window_clashes
from stairwise.tiers import DAY, Horizon, Tier, declared_tier

ROWS_PER_DAY = 10_000_000
DISTINCT_KEYS = 1_000
VALUES_SEEN = 100  # distinct values behind an average state of unknown size, for its width in bytes
BOUNDS = 2  # columns beside the keys: where a window begins and where it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Windows to plan for, and what is known of the events in them.

    Attributes:
        name: The rollup's name.
        declaration: The rollup, in order; None for windows given alone.
        windows: The windows, none of them twice.
        aggregates: What is computed of each, under which name; by name, so that their order makes no difference.
        keys: How many key columns there are.
        layout: What a tier is kept in.
        horizon: The span of time for which the plan must hold.
        estimates: What is known of the events.
        measured: What of it was measured; None: nothing.
    """

    name: str
    declaration: Rollup | None
    windows: tuple[DeclaredWindow, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    keys: int
    layout: Layout = Layout.TABLES
    horizon: Horizon = field(default_factory=Horizon)
    estimates: Estimates = field(default_factory=Estimates)
    measured: Measured | None = None

    @classmethod
    def of(cls, rollup: Rollup) -> Workload:
        """The windows of a declaration; calendars are looked up from where its data begins."""
        rollup = rollup.in_order()
        since, until = Horizon().start, Horizon().end
        return cls(
            name=rollup.name,
            declaration=rollup,
            windows=rollup.windows,
            aggregates=rollup.aggregates,
            keys=len(rollup.keys),
            layout=rollup.layout,
            horizon=Horizon(start=since if rollup.start is None else min(rollup.start, until - DAY), end=until),
            estimates=rollup.estimates,
        )

    @classmethod
    def of_windows(cls, texts: Iterable[str], aggregate: str, estimates: Estimates) -> Workload:
        """Windows that were typed, with one aggregate: a call, or a name for a call over some columns.

        >>> typed = Workload.of_windows(["5m", "1h"], "quantile", Estimates())
        >>> [window.name for window in typed.windows], [str(call) for _, call in typed.aggregates]
        (['5m', '1h'], ['quantile(x, 0.95)'])

        Raises:
            DeclarationError: A text is no window, two of them mean the same, or the aggregate is unknown or empty.
        """
        windows = tuple(DeclaredWindow.parse(text) for text in texts)
        for clash in window_clashes(windows):
            raise clash.error
        if not aggregate.strip():
            raise refusal(aggregate, "it is empty", "name one, such as sum.")
        call = Aggregate.parse(aggregate if "(" in aggregate else _example_call(aggregate))
        return cls(
            name="windows",
            declaration=None,
            windows=windows,
            aggregates=((aggregate, call),),
            keys=1,
            estimates=estimates,
        )

    @property
    def sharing(self) -> Sharing:
        """What all the aggregates together allow.

        One that needs the values themselves sends every tier back to them, and then the others ride along for free.
        """
        aggregates = [aggregate for _, aggregate in self.aggregates]
        if any(aggregate.sharing is Sharing.HOLISTIC for aggregate in aggregates):
            return Sharing.HOLISTIC
        return strictest(aggregates)

    @property
    def is_invertible(self) -> bool:
        """Whether a running total may serve all aggregates, whatever the columns' types."""
        return all(aggregate.invertibility is Invertibility.ALWAYS for _, aggregate in self.aggregates)

    def problem(self, options: Options) -> Problem:
        """The workload as the planner's problem.

        Raises:
            UsageError: The options ask for semantics that would make wrong results of the aggregates.
        """
        aggregates = (aggregate for _, aggregate in self.aggregates)
        options.check_sharing(aggregates, is_declared=self.declaration is not None)
        declared = tuple(
            declared_tier(window.name, window.text, window.window, self.horizon) for window in self.windows
        )
        sharing = options.sharing or self.sharing
        return Problem(
            declared=declared,
            sharing=sharing,
            model=self._model(declared, sharing, options),
            eta=options.eta,
            steps=options.steps,
        )

    def _model(self, declared: tuple[Tier, ...], sharing: Sharing, options: Options) -> CostModel:
        match options.pricing:
            case Pricing.PAPER:
                return PaperModel.of(declared, eta=options.eta)
            case Pricing.BATCH:
                return self._batch_model(sharing, options)
            case _:
                assert_never(options.pricing)

    def _batch_model(self, sharing: Sharing, options: Options) -> BatchModel:
        known, calibration = self.estimates, options.calibration
        constants = Constants() if calibration is None else calibration.constants
        values = known.distinct_values or VALUES_SEEN
        partials = partial_columns(aggregate for _, aggregate in self.aggregates)
        return BatchModel(
            rows_per_s=(known.rows_per_day or ROWS_PER_DAY) / DAY,
            keys=(known.distinct_keys or DISTINCT_KEYS) if self.keys else 1,
            values=known.distinct_values,
            row_bytes=8 * (self.keys + BOUNDS) + sum(partial.state_bytes(values) for partial in partials),
            is_invertible=self.is_invertible,
            is_holistic=sharing is Sharing.HOLISTIC,
            makes_passes=not any(partial.traits.bytes_per_value for partial in partials),
            commit_s=constants.commit if self.layout is Layout.TABLES else constants.shared_commit,
            curve=self._curve(),
            constants=constants,
        )

    def _curve(self) -> KeyCurve | None:
        """Keys among events, if that was measured, and nobody says that there are more or fewer keys."""
        if self.measured is None or self.estimates.distinct_keys != self.measured.estimates.distinct_keys:
            return None
        return self.measured.curve

    def assumptions(self, options: Options) -> tuple[str, ...]:
        """What the batch model took for granted because nobody said or measured it."""
        if options.pricing is Pricing.PAPER:
            return ()
        notes = [*_calibration_notes(options), *(() if self.measured is None else self.measured.notes())]
        if self.estimates.rows_per_day is None:
            what = f"{ROWS_PER_DAY:,} rows a day were assumed"
            notes.append(f"{what}; say otherwise with --rows-per-day or estimates.rows_per_day")
        if self.estimates.distinct_keys is None and self.keys:
            what = f"{DISTINCT_KEYS:,} distinct keys were assumed"
            notes.append(f"{what}; say otherwise with --distinct-keys or estimates.distinct_keys")
        partials = partial_columns(aggregate for _, aggregate in self.aggregates)
        if self.estimates.distinct_values is None and any(partial.traits.bytes_per_value for partial in partials):
            notes.append(
                f"states of {VALUES_SEEN} distinct values were assumed; say otherwise with estimates.distinct_values"
            )
        return tuple(notes)


def _calibration_notes(options: Options) -> list[str]:
    """Whose constants these are, if they are not those of this version."""
    known = options.calibration
    if known is None:
        return []
    return [f"constants of the cost model measured on {known.where}, at {format_instant(known.at)}"]


def _example_call(name: str) -> str:
    """A call of the aggregate of that name, over columns of any name."""
    definition = next((one for one in CATALOGUE if one.name == name), None)
    if definition is None:
        return f"{name}(x)"
    literals = [parameter.example for parameter in definition.parameters if parameter.default is None]
    return written(name, (*definition.arguments, *literals), None)
