"""A comparison as one page that needs nothing else: no script, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from tritonchaos.comparing.records import Comparison, Kind, Outcome, Row, SideFacts
from tritonchaos.summary import printable, without_folders
from tritonchaos.units import format_bytes

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #f6f8fa;
  --bad: #b3261e; --good: #1a6b34; --unsure: #7a5200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #3d444d; --soft: #161b22;
  --bad: #ff9a91; --good: #7ee2a0; --unsure: #f0c36d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; padding: 1rem;
  max-width: 75rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid var(--line); padding: .35rem .55rem; text-align: left; vertical-align: top;
  overflow-wrap: break-word; min-width: 6rem; } th { background: var(--soft); }
td.about { min-width: 16rem; overflow-wrap: anywhere; } td.outcome { white-space: nowrap; }
summary { cursor: pointer; font-weight: 600; margin-top: 1.5rem; }
.worse, .new { color: var(--bad); font-weight: 600; } .better, .fixed { color: var(--good); font-weight: 600; }
.cannot-tell { color: var(--unsure); font-weight: 600; } .aside { opacity: .8; }
pre { background: var(--soft); border: 1px solid var(--line); padding: .75rem; overflow-x: auto; }
"""


def page(comparison: Comparison) -> bytes:
    """Build the page."""
    return "\n".join(_lines(comparison)).encode("utf-8", "replace")


def _lines(comparison: Comparison) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    # Nothing is fetched and nothing runs, whatever a run's texts say.
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(comparison.headline)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield f'<h1 class="{_class(comparison.word)}">{_text(comparison.headline)}</h1>'
    yield f"<p>Exit code {int(comparison.exit_code)}.</p>"
    told = [row for row in comparison.rows if row.outcome is not Outcome.SAME]
    yield from _table("What differs, or cannot be told, and decides", [row for row in told if row.decides])
    yield from _table("What differs, or cannot be told, and does not decide", [row for row in told if not row.decides])
    same = [row for row in comparison.rows if row.outcome is Outcome.SAME]
    if same:
        yield f"<details{'' if told else ' open'}><summary>What is the same: {len(same)}</summary>"
        yield from _table("What is the same", same)
        yield "</details>"
    yield from _facts(comparison.base, comparison.candidate)
    if comparison.notes:
        yield "<h2>Notes</h2>\n<ul>"
        yield from (f"<li>{_text(note)}</li>" for note in comparison.notes)
        yield "</ul>"
    for title, diff in comparison.differences.items():
        yield f"<h2>Differences of {_text(title)}</h2>\n<pre>{_text(diff)}</pre>"
    yield "</main>\n</body>\n</html>\n"


def _table(title: str, rows: list[Row]) -> Iterator[str]:
    if not rows:
        return
    yield f'<h2>{title}</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
    yield "<table>\n<thead><tr>"
    has_scenarios = len({row.scenario for row in rows}) > 1
    names = ("outcome", *(("scenario",) if has_scenarios else ()), "about", "base", "candidate", "difference")
    yield "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead>\n<tbody>"
    for row in rows:
        why = f'<div class="aside">{_text(row.why)}</div>' if row.why else ""
        cells = (
            f'<td class="outcome {_class(row.outcome.value)}">{row.outcome.value}</td>',
            *((f"<td>{_text(row.scenario)}</td>",) if has_scenarios else ()),
            f'<td class="about">{_text(row.about)}{why}</td>',
            *(f"<td>{_text(text)}</td>" for text in (row.base, row.candidate, difference_text(row))),
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody>\n</table>\n</div>"


def difference_text(row: Row) -> str:
    """Print a difference with its interval, in the unit of its row; "" where there is none."""
    if row.difference is None:
        return ""
    if row.interval is None:
        return _amount(row, row.difference)
    low, high = (_amount(row, bound) for bound in row.interval)
    return f"{_amount(row, row.difference)} ({low} to {high})"


def _amount(row: Row, number: float) -> str:
    if abs(number) == float("inf"):
        return "unbounded"
    sign = "+" if number > 0 else ""
    return f"{sign}{number / 1e6:.2f} ms" if row.kind is Kind.TIME else f"{sign}{format_bytes(number)}"


def _facts(base: SideFacts, candidate: SideFacts) -> Iterator[str]:
    yield '<h2>What was compared</h2>\n<div class="scroll">\n<table>\n<thead><tr><th scope="col"></th>'
    yield '<th scope="col">base</th><th scope="col">candidate</th></tr></thead>\n<tbody>'
    rows = [("name", base.name, candidate.name), ("runs", str(base.runs), str(candidate.runs))]
    for name in dict.fromkeys([*base.facts, *candidate.facts]):
        rows.append((name, ", ".join(base.facts.get(name, ())), ", ".join(candidate.facts.get(name, ()))))
    for cells in rows:
        head, *values = (_text(cell) for cell in cells)
        yield f'<tr><th scope="row">{head}</th>{"".join(f"<td>{value}</td>" for value in values)}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _class(word: str) -> str:
    return word.replace(" ", "-") if word in {outcome.value for outcome in Outcome} else ""


def _text(text: str) -> str:
    return escape(printable(without_folders(text)))
