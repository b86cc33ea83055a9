"""Means, and sums of squared and of crossed deviations, for one column or for two: kept so that nothing cancels.

A state is `n, mean, m2` or `n, mean_x, mean_y, m2_x, m2_y, c`, all doubles but `n`. States merge by the pairwise
formula of Chan, Golub and LeVeque: the deviations within the parts, plus n (mean - M)^2 of each, where M is the total
mean. Spark has no weighted variance, but over K parts the latter sum is

    K (covar_pop(n mean, mean) - M covar_pop(n, mean))

whose covariances Spark centres while it goes. So the error grows with mean / deviation, as that of one pass over the
rows does, where that of sums of squares grows with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def lifted_moments(values: Sequence[Column]) -> tuple[Column, ...]:
    """The state of one column of doubles, or of two that are NULL in the same rows."""
    n = F.count(values[0])
    # What never varies has a mean that is its value, and no deviations; rounding would leave some of the latter.
    spreads = [F.max(each) - F.min(each) for each in values]
    constant = [F.min(each) == F.max(each) for each in values]
    means = [F.when(fixed, F.min(each)).otherwise(F.avg(each)) for each, fixed in zip(values, constant, strict=True)]
    pairs = [(0, 0)] if len(values) == 1 else [(0, 0), (1, 1), (0, 1)]
    deviations = [
        F.when(constant[x] | constant[y], spreads[x] * spreads[y]).otherwise(F.covar_pop(values[x], values[y]) * n)
        for x, y in pairs
    ]
    return n, *means, *deviations


def combined_moments(states: Sequence[Column], fold: Callable[[Column], Column]) -> tuple[Column, ...]:
    """The state over finer states; `fold` says over which of them an aggregate runs."""
    arity = 1 if len(states) == 3 else 2
    n, means, deviations = states[0], states[1 : 1 + arity], states[1 + arity :]
    total = fold(F.sum(n))
    centres = [_total_mean(n, mean, total, fold) for mean in means]
    pairs = [(0, 0)] if arity == 1 else [(0, 0), (1, 1), (0, 1)]
    between = [_between(n, (means[x], means[y]), centres[x], fold) for x, y in pairs]
    sums = [fold(F.sum(within)) + added for within, added in zip(deviations, between, strict=True)]
    return total, *centres, *sums


def _total_mean(n: Column, mean: Column, total: Column, fold: Callable[[Column], Column]) -> Column:
    correction = fold(F.count(mean)) * fold(F.covar_pop(n.cast("double"), mean)) / total
    return F.when(_is_constant(mean, fold), fold(F.min(mean))).otherwise(fold(F.avg(mean)) + correction)


def _between(n: Column, means: tuple[Column, Column], centre: Column, fold: Callable[[Column], Column]) -> Column:
    """The sum of n times the product of both means' distances from their total means."""
    x, y = means
    weighted = fold(F.covar_pop(n * x, y)) - centre * fold(F.covar_pop(n.cast("double"), y))
    constant = _is_constant(x, fold) | _is_constant(y, fold)
    added = F.when(constant, F.lit(0.0)).otherwise(fold(F.count(x)) * weighted)
    # Means that are all but equal may leave less than nothing, whose root would be NaN.
    return F.greatest(added, F.lit(0.0)) if x is y else added


def _is_constant(mean: Column, fold: Callable[[Column], Column]) -> Column:
    return fold(F.min(mean)) == fold(F.max(mean))
