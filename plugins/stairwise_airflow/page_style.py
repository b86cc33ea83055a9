"""How the page looks: light and dark, narrow and wide; what is told by colour is told by a pattern or a word too."""

from __future__ import annotations

from stairwise.theme import PALETTE

_EXTRA = {
    "written": ("#3d7ec7", "#4f8fd8"),
    "stale": ("#b35c00", "#ffb35c"),
    "gap": ("#b3261e", "#ff8a80"),
    "focus": ("#1a5fb4", "#78b4ff"),
}
_COLOURS = PALETTE | _EXTRA
_RULES = """
* { box-sizing: border-box; }
body { margin: 0; padding: 1.25rem clamp(.75rem, 2.5vw, 2.5rem) 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; max-width: 1600px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
p { margin: .25rem 0; max-width: 75ch; }
a { color: var(--declared); }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.quiet { color: var(--quiet); }
.notice { border-left: 4px solid var(--stale); background: var(--band); padding: .5rem .75rem; margin: 1rem 0; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .75rem 0 0; }
.facts div { min-width: 7rem; }
.facts dt { color: var(--quiet); font-size: .85rem; }
.facts dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }

.stairs, .stairs ol { list-style: none; margin: 0; padding: 0; }
.stairs ol { margin-left: clamp(.6rem, 2.2vw, 2rem); border-left: 2px solid var(--line); }
.stairs li { position: relative; }
.stairs ol > li { padding-left: clamp(.5rem, 1.4vw, 1.1rem); }
.stairs ol > li::before { content: ""; position: absolute; left: 0; top: 1.65rem; width: clamp(.4rem, 1.2vw, .95rem);
  border-top: 2px solid var(--line); }
.step { border: 1.5px solid var(--line); border-radius: 6px; margin: .5rem 0; background: var(--paper);
  max-width: 60rem; }
.step > summary { display: grid; grid-template-columns: minmax(9rem, 1.6fr) minmax(7rem, 2fr) 5.5rem 5.5rem;
  gap: 0 1rem; align-items: baseline; padding: .45rem .75rem; cursor: pointer; list-style: none; }
.step > summary::-webkit-details-marker { display: none; }
.step > div { padding: 0 .75rem .6rem; border-top: 1px solid var(--band); }
.name { font-weight: 600; overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: block; height: .4rem; background: var(--band); border-radius: 3px; overflow: hidden;
  grid-column: 1 / -1; margin-top: .3rem; }
.bar i { display: block; height: 100%; background: var(--line); border-radius: 3px; min-width: 2px; }
.raw { border: 2px solid var(--ink); border-radius: 6px; display: inline-block; padding: .35rem .75rem;
  font-weight: 600; max-width: 100%; overflow-wrap: anywhere; }
.declared { border-color: var(--declared); background: var(--declared-fill); }
.factor { border-color: var(--factor); background: var(--factor-fill); border-style: dashed; }
.composite { border-color: var(--composite); background: var(--composite-fill); border-style: dotted;
  border-width: 2px; }
.tag { font-size: .78rem; font-weight: 400; color: var(--quiet); white-space: nowrap; }

.ribbons { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 3px .75rem; align-items: center; }
.ribbons .label { font-size: .88rem; overflow-wrap: anywhere; }
.ribbon { display: flex; height: 1.35rem; border-radius: 3px; overflow: hidden; background: var(--band); }
.cell { position: relative; min-width: 0; height: 100%; }
.written { background: var(--written); }
.stale { background: repeating-linear-gradient(135deg, var(--stale) 0 4px, var(--paper) 4px 8px); }
.expired { background: repeating-linear-gradient(90deg, var(--quiet) 0 6px, transparent 6px 10px)
  center / 100% 3px no-repeat; }
.gap { background: var(--paper); border: 2px solid var(--gap); }
.gap::after { content: "\\00d7"; position: absolute; inset: 0; display: grid; place-items: center;
  color: var(--gap); font-weight: 700; line-height: 1; overflow: hidden; }
.open { background: radial-gradient(var(--line) 1px, transparent 1.5px) 0 0 / 6px 6px; }
.nothing { background: transparent; }
.again::before { content: ""; position: absolute; left: 0; right: 0; bottom: 0; height: 5px;
  background: repeating-linear-gradient(90deg, var(--paper) 0 3px, var(--ink) 3px 6px); }
.axis { grid-column: 2; display: flex; justify-content: space-between; font-size: .8rem; color: var(--quiet);
  font-variant-numeric: tabular-nums; gap: .5rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .75rem 0 0; list-style: none;
  font-size: .88rem; }
.legend .cell { display: inline-block; width: 1.5rem; height: .95rem; vertical-align: -2px; margin-right: .4rem;
  border-radius: 2px; }
.legend .nothing { background: var(--band); }
.legend .nothing { border: 1px solid var(--band); }
nav.spans { display: flex; gap: .4rem; flex-wrap: wrap; margin: .5rem 0; }
nav.spans a { padding: .1rem .6rem; border: 1px solid var(--line); border-radius: 999px; text-decoration: none;
  font-size: .88rem; }
nav.spans a[aria-current] { background: var(--declared); border-color: var(--declared); color: var(--paper); }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th { text-align: left; font-weight: 600; color: var(--quiet); font-size: .85rem; }
th, td { white-space: nowrap; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--band); }
td code, th code { overflow-wrap: normal; }
td.number, th.number { text-align: right; }
tr.chosen { background: var(--band); }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: .5rem 0; }
form label { display: grid; font-size: .85rem; color: var(--quiet); }
input, select, button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line);
  border-radius: 4px; padding: .25rem .5rem; max-width: 100%; }
button { background: var(--declared); border-color: var(--declared); color: var(--paper); cursor: pointer; }
.answer { border-left: 4px solid var(--declared); padding: .4rem .75rem; background: var(--band); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 640px) {
  .step > summary { grid-template-columns: 1fr auto; gap: 0 .75rem; }
  .step > summary .how { grid-column: 1 / -1; grid-row: 2; }
  .step > summary .cost { display: none; }
  .ribbons { grid-template-columns: 1fr; gap: 1px; }
  .ribbons .label { margin-top: .4rem; }
  .axis { grid-column: 1; }
}
@media (forced-colors: active) { .cell, .bar i { forced-color-adjust: none; } }
"""

# The page is in a frame of Airflow's, whose root says which theme is chosen. Without one, the reader's system does.
SCRIPT = """
const root = document.documentElement;
function follow() {
  let names = [];
  try { names = [...window.parent.document.documentElement.classList]; } catch { names = []; }
  const dark = names.includes("dark") ||
    (!names.includes("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "dark" : "light";
}
follow();
try {
  new MutationObserver(follow).observe(window.parent.document.documentElement, {attributeFilter: ["class"]});
} catch { matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow); }
"""


def style_sheet() -> str:
    """The whole of it; dark where the root says so, and without a script where the reader's system does."""
    light, dark = (" ".join(f"--{name}: {pair[side]};" for name, pair in _COLOURS.items()) for side in (0, 1))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n{_RULES}"
    )
