"""Window sets to plan for: the two generators of "Factor Windows" (algorithm 6 and its sequential sister), seeded.

Ranges are multiples ``2 ... 50`` of a seed range; hopping windows draw slides from seed slides and last two slides. As
printed, each window draws its own seed; the speed-ups the paper reports fit one seed for a whole set. Both are here.
A window that is in the set already is drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import count
from random import Random

from stairwise.window import FixedWindow

SEED_RANGES = (2, 5, 10)
SEED_SLIDES = (5, 10, 20)
MULTIPLES = 50


class Generator(Enum):
    """How the multiples are chosen."""

    RANDOM = "R"
    SEQUENTIAL = "S"


class Shape(Enum):
    """What windows there are."""

    TUMBLING = "tumbling"
    HOPPING = "hopping"


class Seeding(Enum):
    """Which windows share a seed."""

    PER_WINDOW = "window"
    PER_SET = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a set is drawn from.

    Attributes:
        size: How many windows.
        multiples: The largest multiple of the seed.
    """

    generator: Generator
    shape: Shape
    seeding: Seeding
    size: int
    multiples: int = MULTIPLES

    def __str__(self) -> str:
        return f"{self.generator.value}-{self.size} {self.shape.value}, a seed per {self.seeding.value}"


def draw(recipe: Recipe, seed: int) -> tuple[FixedWindow, ...]:
    """The windows of a recipe; the same seed gives the same windows everywhere.

    >>> recipe = Recipe(generator=Generator.SEQUENTIAL, shape=Shape.HOPPING, seeding=Seeding.PER_SET, size=3)
    >>> [(window.range, window.slide) for window in draw(recipe, seed=1)]
    [(40, 20), (60, 30), (80, 40)]
    """
    random = Random(f"{recipe} {recipe.multiples} {seed}")
    seeds: tuple[int, ...] = SEED_RANGES if recipe.shape is Shape.TUMBLING else SEED_SLIDES
    if recipe.seeding is Seeding.PER_SET:
        seeds = (random.choice(seeds),)
    slides: dict[int, None] = {}
    for turn in count(2):
        if len(slides) == recipe.size:
            break
        multiple = turn if recipe.generator is Generator.SEQUENTIAL else random.randint(2, recipe.multiples)
        fresh = [multiple * seed for seed in seeds if multiple * seed not in slides]
        if fresh:
            slides[random.choice(fresh)] = None
    if recipe.shape is Shape.TUMBLING:
        return tuple(FixedWindow(slide, slide) for slide in slides)
    return tuple(FixedWindow(2 * slide, slide) for slide in slides)
