"""The page's parts as markup: everything that must be readable with no script, on paper and by a screen reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tritonchaos.html_page.markup import Html, tag, void
from tritonchaos.html_page.step_data import edits_at
from tritonchaos.html_page.tables import (
    checks_table,
    counts_table,
    facts_table,
    post_unload_tables,
    readings_table,
    retained_tables,
)
from tritonchaos.html_page.time_line import TimeLine
from tritonchaos.summary import FinishedRun, amount_text, variant_sentences
from tritonchaos.verdict import Finding

_WORDS: Final = {"pass": "Pass", "findings": "Findings", "inconclusive": "Inconclusive"}
_SIGNS: Final = {"pass": "✓", "findings": "✕", "inconclusive": "?"}
_EVIDENCE_LINES: Final = 14
_FEW_CYCLES: Final = 4


def body(run: FinishedRun, line: TimeLine) -> Iterator[Html]:
    """Yield the parts from top to bottom; where there are too few cycles for a curve the time line comes first."""
    yield tag("a", "Skip to the findings", href="#findings", class_="skip")
    yield _header(run)
    memory, lanes = _memory(run), _time_line()
    curves = (lanes, memory) if len(run.rows) < _FEW_CYCLES else (memory, lanes)
    yield tag("main", _findings(run, line), *curves, _cycle(), _log(run), _checks(run), _facts(run), _scenario(run))
    yield tag(
        "footer", tag("p", f"Made by tritonchaos {run.results['tritonchaos_version']} from run.db. {_reproduce(run)}")
    )


def _section(name: str, title: str, *parts: Html | Iterator[Html]) -> Html:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *parts, id=name, aria_labelledby=f"{name}-title")


# --- the head ------------------------------------------------------------------------------------


def _header(run: FinishedRun) -> Html:
    word = str(run.results["verdict"])
    _, _, sentence = run.headline.partition(": ")
    interrupted = " (interrupted)" if run.history.interrupted else ""
    sign = tag("span", _SIGNS[word], class_="sign", aria_hidden="true")
    title = tag(
        "h1", sign, tag("span", f"{_WORDS[word]}{interrupted}", class_="word"), tag("span", sentence, class_="rest")
    )
    top = tag("div", tag("span", "tritonchaos", class_="brand"), _theme_button(), class_="top")
    return tag("header", top, title, _cause(run), _key_facts(run), _nav(run), class_=f"verdict {word}")


def _theme_button() -> Html:
    return tag("button", "Theme: system", type="button", id="theme", class_="quiet", hidden=True)


def _cause(run: FinishedRun) -> Html | None:
    first = next((finding for finding in run.verdict.findings if finding.counts), None)
    return tag("p", first.title, class_="cause") if first else None


def _key_facts(run: FinishedRun) -> Html:
    results, target = run.results, run.results["target"]
    served = ", ".join(f"{model}: {variant}" for model, variant in results["variants"].items())
    server = f"Triton {target.get('triton_version', 'of unknown version')}, {target.get('target', 'unknown target')}"
    image = target.get("image", "")
    facts = {
        "Scenario": results["scenario"],
        "Server": server,
        "Image": image,
        "Models": served,
        "Cycles": str(len(run.rows)),
        "Seed": str(results["seed"]),
        "Started": run.history.facts.started_utc,
        "Exit code": str(run.exit_code),
    }
    items = (tag("div", tag("dt", name), tag("dd", str(value))) for name, value in facts.items() if value)
    return tag("dl", *items, class_="key")


def _nav(run: FinishedRun) -> Html:
    links = {
        "findings": "Findings" if run.verdict.findings else "Result",
        "memory": "Memory",
        "timeline": "Time line",
        "cycle": "Cycle",
        "log": "Log",
        "checks": "Checks",
        "facts": "Facts",
        "scenario": "Scenario",
    }
    items = (tag("li", tag("a", title, href=f"#{name}")) for name, title in links.items())
    return tag("nav", tag("ul", *items), aria_label="Sections")


# --- findings ------------------------------------------------------------------------------------


def _findings(run: FinishedRun, line: TimeLine) -> Html:
    findings = run.verdict.findings
    if not findings:
        text = "Nothing was found." if run.results["verdict"] == "pass" else run.headline
        return _section("findings", "Result", tag("p", text), _stand_ins(run))
    cards = (_finding(number, finding, edits_at(line, finding.position)) for number, finding in enumerate(findings, 1))
    title = "Finding" if len(findings) == 1 else f"Findings ({len(findings)})"
    return _section("findings", title, tag("div", *cards, class_="cards"), _stand_ins(run))


def _stand_ins(run: FinishedRun) -> Html:
    return tag("p", "; ".join(variant_sentences(run.results["variants"])), class_="note")


def _finding(number: int, finding: Finding, edits: Sequence[str]) -> Html:
    kind = tag("span", finding.kind.replace("_", " "), class_="kind")
    heading = tag("h3", kind, tag("span", finding.title), id=f"finding-{number}")
    parts = [heading, _growth(finding), tag("dl", *_finding_facts(finding, edits), class_="key"), _evidence(finding)]
    if finding.details:
        lines = tag("pre", "\n".join(finding.details[1:]), tabindex=0)
        parts.append(tag("details", tag("summary", finding.details[0]), lines))
    class_ = "card" if finding.counts else "card uncounted"
    return tag("article", *parts, class_=class_, aria_labelledby=f"finding-{number}")


def _growth(finding: Finding) -> Html | None:
    if finding.bytes_per_cycle is None:
        return None
    amount = amount_text(finding.metric, finding.bytes_per_cycle)
    parts = [tag("strong", amount), tag("span", f" per {finding.per}")]
    if finding.interval_bytes_per_cycle is not None:
        low, high = (amount_text(finding.metric, bound) for bound in finding.interval_bytes_per_cycle)
        parts.append(tag("span", f", 95 % interval {low} to {high}", class_="interval"))
    return tag("p", *parts, class_="growth")


def _finding_facts(finding: Finding, edits: Sequence[str]) -> Iterator[Html]:
    def fact(name: str, *value: Html | str) -> Html:
        return tag("div", tag("dt", name), tag("dd", *value))

    if edits:
        yield fact("Edit in force", tag("code", "; ".join(edits)))
    if finding.metric:
        yield fact("Metric", tag("code", finding.metric))
    if finding.position is not None:
        yield fact("First seen", _position(finding))
        yield fact("Seen", f"{finding.occurrences} time{'s' if finding.occurrences != 1 else ''}")
    yield fact("Check", tag("code", finding.checker))
    yield fact("Id", tag("code", finding.id))
    if finding.known:
        yield fact("Known", _link(finding.known))
    if finding.undocumented:
        yield fact("Note", "the step that led here goes outside Triton's documented rules")
    if not finding.counts:
        yield fact("Note", "it does not change the exit code")


def _position(finding: Finding) -> Html:
    at = finding.position
    text = f"{at}{f' ({finding.step})' if finding.step else ''}"
    if at is None or at.cycle is None:
        return tag("span", text)
    return tag("a", text, href="#cycle", data_phase=at.phase, data_cycle=at.cycle)


def _link(address: str) -> Html:
    """A scenario file may name any address; only those of the web become links."""
    if not address.startswith(("https://", "http://")):
        return tag("span", address)
    return tag("a", address, href=address, rel="noopener noreferrer")


def _evidence(finding: Finding) -> Html | None:
    if not finding.evidence:
        return None
    first, rest = finding.evidence[:_EVIDENCE_LINES], finding.evidence[_EVIDENCE_LINES:]
    shown = tag("pre", "\n".join(first), tabindex=0, aria_label="Evidence")
    if not rest:
        return shown
    more = tag(
        "details",
        tag("summary", f"{len(rest)} more line{'s' if len(rest) != 1 else ''}"),
        tag("pre", "\n".join(rest), tabindex=0),
    )
    return tag("div", shown, more)


# --- what the script fills -----------------------------------------------------------------------


def _memory(run: FinishedRun) -> Html:
    if not run.rows:
        return _section("memory", "Post-unload memory", tag("p", "No cycle was finished, so there is no reading."))
    note = (
        f"Each point is the median of the last {run.history.facts.sample_count} samples of a cycle, when its models "
        "are gone. Shaded stretches: an edit was in force."
    )
    chart = (
        tag("div", tag("label", "Metric", for_="metric"), tag("select", id="metric"), class_="controls", hidden=True),
        tag("div", id="curve", class_="chart", tabindex=0, role="group", aria_describedby="curve-said", hidden=True),
        tag("div", id="curve-legend", class_="legend", aria_hidden="true"),
        tag("p", id="curve-said", class_="said", role="status"),
        tag("div", id="metrics-few", class_="few"),
    )
    return _section(
        "memory",
        "Post-unload memory",
        tag("p", note, class_="note"),
        *chart,
        *retained_tables(run),
        *post_unload_tables(run),
        _over_time(),
    )


def _over_time() -> Html:
    chart = tag("div", id="samples", class_="chart", tabindex=0, role="group", aria_describedby="samples-said")
    controls = tag("div", tag("label", "Metric", for_="sampled"), tag("select", id="sampled"), class_="controls")
    said = tag("p", id="samples-said", class_="said", role="status")
    return tag("details", tag("summary", "Samples over time"), controls, chart, said, id="over-time", hidden=True)


def _time_line() -> Html:
    note = "Every step of the run by what it was; colour says what came back. Choose a mark to see its cycle."
    parts = (
        tag("p", note, class_="note"),
        tag("div", id="lanes", class_="lanes"),
        tag("p", id="lanes-said", class_="said", role="status"),
        tag("div", id="outside"),
        tag("noscript", tag("p", "The time line is drawn by the page's script. All steps are in run.db.")),
    )
    return _section("timeline", "Time line", *parts)


def _cycle() -> Html:
    buttons = (
        tag("button", "Previous", type="button", id="previous"),
        tag("label", "Cycle", for_="chosen"),
        tag("select", id="chosen"),
        tag("button", "Next", type="button", id="next"),
    )
    parts = (
        tag("div", *buttons, class_="controls", id="choice", hidden=True),
        tag("div", id="steps", aria_live="polite"),
        tag("noscript", tag("p", "Choosing a cycle needs the page's script.")),
    )
    return _section("cycle", "One cycle", *parts)


def _log(run: FinishedRun) -> Html:
    if not run.history.log:
        return _section("log", "Server log", tag("p", "The run has no server.log."))
    controls = (
        tag("label", "Find", for_="find"),
        void("input", id="find", type="search", autocomplete="off", spellcheck="false"),
        tag("label", void("input", id="only", type="checkbox"), tag("span", "only the chosen cycle")),
        tag("span", id="found", role="status"),
    )
    return _section(
        "log",
        "Server log",
        tag("div", *controls, class_="controls", hidden=True, id="log-controls"),
        tag("div", id="lines", class_="lines", tabindex=0, role="region", aria_label="Lines of server.log"),
        tag("noscript", tag("p", "The log is shown by the page's script; it is server.log in the run directory.")),
    )


# --- tables --------------------------------------------------------------------------------------


def _checks(run: FinishedRun) -> Html:
    return _section("checks", "Checks", checks_table(run), *counts_table(run))


def _facts(run: FinishedRun) -> Html:
    notes = tag("ul", *(tag("li", note) for note in run.results["notes"])) if run.results["notes"] else None
    parts = [facts_table(run), *readings_table(run)]
    if notes is not None:
        parts += [tag("h3", "Notes"), notes]
    return _section("facts", "Server and machine", *parts)


def _scenario(run: FinishedRun) -> Html:
    text = run.history.scenario_text
    shown = tag("pre", text, tabindex=0, aria_label="Scenario file") if text else tag("p", "scenario.yaml is missing.")
    return _section("scenario", "Scenario as run", tag("p", _reproduce(run), class_="note"), shown)


def _reproduce(run: FinishedRun) -> str:
    return f"To run it again: tritonchaos run scenario.yaml --seed {run.results['seed']}"
