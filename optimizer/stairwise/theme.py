"""The colours and strokes of a plan's picture, on light pages and on dark ones.

Nothing is said by colour alone; the colours are chosen so that each text has a contrast of at least 4.5 with the ground
that it stands on, in both schemes.
"""

from __future__ import annotations

from stairwise.tiers import Kind

# Each in light and in dark.
PALETTE = {
    "paper": ("#ffffff", "#12161b"),
    "band": ("#f1f4f7", "#1a2027"),
    "ink": ("#17212b", "#e9eef3"),
    "quiet": ("#55606c", "#a3afbb"),
    "line": ("#7d8995", "#72808d"),
    "declared": ("#1a5fb4", "#78b4ff"),
    "declared-fill": ("#ffffff", "#15263a"),
    "factor": ("#8a5a00", "#e6b450"),
    "factor-fill": ("#fff8e8", "#2e2511"),
    "composite": ("#7b3fb3", "#c8a2ff"),
    "composite-fill": ("#f7f0fd", "#281e36"),
    "good": ("#1a7f37", "#5ac878"),
}

COLOURS = (
    ("text", "fill", "ink"), (".quiet", "fill", "quiet"), (".good", "fill", "good"), (".paper", "fill", "paper"),
    (".band", "fill", "band"), (".bar, .tip", "fill", "line"), (".link", "stroke", "line"),
    (".label", "fill", "paper"), (".label", "stroke", "line"), (".raw", "fill", "paper"), (".raw", "stroke", "ink"),
    *((f".{kind.value}", "fill", f"{kind.value}-fill") for kind in Kind),
    *((f".{kind.value}", "stroke", kind.value) for kind in Kind),
    *((f".{kind.value}-ink", "fill", kind.value) for kind in Kind),
)  # fmt: skip
SHAPES = """
.stairwise text {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  font-size: 12px;
}
.stairwise .title { font-size: 22px; font-weight: 600; }
.stairwise .name { font-size: 13px; font-weight: 600; }
.stairwise .small { font-size: 11px; }
.stairwise .middle { text-anchor: middle; }
.stairwise .end { text-anchor: end; }
.stairwise .link { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
.stairwise .label { stroke-width: 0.75; }
.stairwise .raw { stroke-width: 2.5; }
.stairwise .declared { stroke-width: 1.5; }
.stairwise .factor { stroke-width: 1.5; stroke-dasharray: 7 4; }
.stairwise .composite { stroke-width: 2; stroke-dasharray: 2 3; }
"""


def style_sheet() -> str:
    """Every colour by name, dark where the reader prefers that; a renderer without variables takes the light one."""
    light, dark = (" ".join(f"--{name}: {pair[side]};" for name, pair in PALETTE.items()) for side in (0, 1))
    rules = (
        f"{selector} {{ {key}: {PALETTE[name][0]}; {key}: var(--{name}); }}"
        for selectors, key, name in COLOURS
        for selector in (", ".join(f".stairwise {one}" for one in selectors.split(", ")),)
    )
    schemes = (
        f".stairwise {{ color-scheme: light dark; {light} }}",
        f"@media (prefers-color-scheme: dark) {{ .stairwise {{ {dark} }} }}",
    )
    return "\n".join((*schemes, SHAPES.strip(), *rules))
