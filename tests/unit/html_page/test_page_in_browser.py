"""The page in a real browser: its own script runs, nothing else does."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import CONTROL, TREATMENT, make_cycle, make_position, make_step, refused, run
from tests.chromium import dom_after_scripts
from tests.finished_runs import HOST, LEAK, leaking_run
from tritonchaos.html_page import render_page
from tritonchaos.observations import Note, PhaseFacts, Reading
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Status, Verdict

# Whatever of these runs changes the page so that it shows in the document.
_RUN = "document.documentElement.setAttribute('data-owned','1')"
HOSTILE = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f'"><svg onload="{_RUN}">',
    f"' autofocus onfocus='{_RUN}",
    f"<!--<script>{_RUN}//-->",
    f"javascript:{_RUN}",
    f"\u2028</style><script>{_RUN}</script>",
    "${alert(1)}{{constructor.constructor('alert(1)')()}}",
)
ALL = " ".join(HOSTILE)


def hostile_run() -> FinishedRun:
    """Every text that comes from a server, a file or a person tries to run script."""
    position = make_position(ALL, cycle=0)
    step = replace(make_step("load", ALL, reply=refused(ALL), position=position), log_start=0, log_end=60)
    begun, _, *rest = make_cycle({HOST: MIB, f"{ALL}_bytes": MIB}, phase=ALL, arm=TREATMENT)
    control = make_cycle({HOST: MIB}, phase="good", arm=CONTROL)
    history = (
        run()
        .start({HOST: MIB})
        .add(*control, begun, step, *rest, Reading(5, ALL, None, {ALL: 3}), Note(5, ALL))
        .history(
            scenario=ALL,
            run_id=ALL,
            target={"triton_version": ALL, "target": ALL, "image": ALL, ALL: ALL},
            target_skipped=((ALL, ALL),),
            variants={ALL: ALL},
            phases=(PhaseFacts("good", CONTROL, "cycles", 1), PhaseFacts(ALL, TREATMENT, "cycles", 1)),
        )
    )
    history = replace(history, log="\n".join(HOSTILE).encode() + b"\xff\x1b[31m\n", scenario_text=f"scenario: {ALL}")
    finding = replace(
        LEAK, title=ALL, step=ALL, position=position, evidence=HOSTILE, details=HOSTILE, known=HOSTILE[6], kind="leak"
    )
    failed = Assessment("memory_growth", Status.FAIL, ALL, HOST, ALL, ALL, 3, None, (finding,))
    return finish(history, Verdict(Status.FAIL, (failed,), (finding,)), 1)


@pytest.fixture(scope="module")
def hostile_dom(tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render_page(hostile_run()), encoding="utf-8")
    return dom_after_scripts(page)


def test_no_hostile_text_runs_as_script(hostile_dom: str) -> None:
    assert 'data-owned="1"' not in hostile_dom
    # The page's own script did run, over all of these texts.
    assert hostile_dom.count("<canvas") > 3
    assert 'class="line' in hostile_dom


def test_no_hostile_text_becomes_an_element_or_a_link(hostile_dom: str) -> None:
    body = hostile_dom[hostile_dom.index("<body") :]
    assert len(re.findall("<script", body)) == 2  # data and script of the page
    assert "<img" not in body
    assert re.findall(r"<\w+[^<>]*\son\w+\s*=", re.sub(r'"[^"]*"', '""', body)) == []
    assert re.findall(r'href="(?!#)[^"]*"', body) == []


def test_the_policy_stops_a_script_that_got_in_all_the_same(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = render_page(leaking_run())
    for added in (f"<script>{_RUN}</script>", f'<img src="x" onerror="{_RUN}">'):
        text = text.replace("</body>", f"{added}</body>")
    page.write_text(text, encoding="utf-8")
    shown = dom_after_scripts(page, width=400)
    assert "<img" in shown
    assert 'data-owned="1"' not in shown
    assert 'id="curve" class="chart" tabindex="0"' in shown
    assert "1 leak, 4 cycles" in shown


def test_the_page_asks_for_nothing_outside_itself() -> None:
    text = render_page(hostile_run())
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert "default-src 'none'" in html.unescape(text)
    assert "unsafe" not in text[: text.index("<style")]
    assert re.findall(r"<(?:link|img|iframe|object|embed|video|audio|base|form)\b", markup) == []
    assert re.findall(r'\s(?:src|action|style)="', markup) == []


# What a reader does, and what the page then says; put into the page in place of its policy, which lets no script in.
_READER = """
addEventListener("error", (event) => document.documentElement.setAttribute("data-error", event.message));
addEventListener("load", () => setTimeout(() => {
  const get = (id) => document.getElementById(id), said = [];
  const press = (on, key) => on.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
  press(get("curve"), "End"); said.push(get("curve-said").textContent);
  press(get("curve"), "Home"); press(get("curve"), "Enter"); said.push(get("chosen").value);
  get("next").click(); said.push(get("chosen").value);
  const lane = document.querySelectorAll("#lanes canvas")[1];
  press(lane, "ArrowRight"); said.push(get("lanes-said").textContent);
  get("theme").click(); get("theme").click(); said.push(getComputedStyle(document.body).backgroundColor);
  dispatchEvent(new Event("beforeprint")); said.push(document.documentElement.dataset.theme);
  dispatchEvent(new Event("afterprint")); said.push(document.documentElement.dataset.theme);
  document.documentElement.setAttribute("data-said", JSON.stringify(said));
}, 200));
"""


def test_curve_time_line_cycles_and_themes_are_worked_with_keys_and_buttons(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render_page(leaking_run()))
    page.write_text(text.replace("</head>", f"<script>{_READER}</script></head>"), encoding="utf-8")
    shown = dom_after_scripts(page)
    assert "data-error" not in shown[: shown.index("<head")]
    found = re.search(r'<html[^>]* data-said="([^"]*)"', shown)
    assert found is not None
    last, chosen, after, mark, background, printed, screen = json.loads(html.unescape(found[1]))
    assert last == "wrong, cycle 2 (treatment): 104.000 MiB; 4.000 MiB above the baseline"
    assert (chosen, after) == ("baseline, cycle 0", "wrong, cycle 0")
    assert mark.startswith("1 of 4: load ident at ")
    assert background == "rgb(18, 22, 29)"
    assert (printed, screen) == ("light", "dark")
