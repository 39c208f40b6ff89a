from dataclasses import replace

import pytest

from tests.finished_runs import LEAK, leaking_run
from tritonchaos.plugins import REPORTERS
from tritonchaos.reporters.terminal import Terminal, sparkline
from tritonchaos.verdict import Assessment, Status

SUMMARY = """\
FINDINGS: 1 leak, 4 cycles
failed-load, seed 1, local Triton 2.51.0, exit code 1
model ident was served by variant planted (a stand-in, not TensorRT)

Findings
  leak: host_private_bytes grows with each failed load
    1 MiB per cycle, 95 % interval 512 KiB to 1.5 MiB, host_private_bytes
    first at wrong, cycle 3, step 0 (load ident)
    | cycle 0: 102 MiB
    | cycle 1: 103 MiB
    | cycle 2: 104 MiB
    | cycle 3: 105 MiB
    | ... 2 more lines in report.md

Checks
  fail     memory_growth       LEAK, 3 cycles: steps of 1 MiB
           host_private_bytes
  unknown  memory_growth       INCONCLUSIVE, does not count: not read
           host_pss_bytes

Post-unload host_private_bytes
  control   ▁  101 MiB to 101 MiB
  treatment ▃▆█  102 MiB to 104 MiB

Notes
  - nobody else uses it
"""


def test_the_whole_summary_at_80_columns():
    assert Terminal().text(leaking_run(), 80, color=False) == SUMMARY


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    run = leaking_run(treatment_cycles=500, note="nobody else uses the GPU " * 9)
    assert max(len(line) for line in Terminal().text(run, width, color=False).splitlines()) <= width


def test_colours_are_written_only_when_asked_for():
    assert "\x1b[" not in Terminal().text(leaking_run(), 80, color=False)
    assert "\x1b[1;31mFINDINGS" in Terminal().text(leaking_run(), 80, color=True)


def test_text_of_the_server_is_neither_markup_nor_obeyed():
    text = Terminal().text(leaking_run(finding=replace(LEAK, title="[red]x[/red] \x1b[2J :boom:")), 80, color=False)
    assert "leak: [red]x[/red] \ufffd[2J :boom:" in text


def test_what_is_special_about_a_finding_is_said():
    finding = replace(LEAK, known="https://x.org/1", undocumented=True, counts=False, occurrences=4)
    text = Terminal().text(leaking_run(finding=finding), 80, color=False)
    assert "    already known: https://x.org/1\n" in text
    assert "    led to by a step outside Triton's documented rules\n" in text
    assert "    does not count for the exit code\n" in text
    assert "(load ident), 4 times\n" in text


def test_what_is_said_of_several_metrics_in_the_same_words_is_said_once():
    run = leaking_run()
    flat = [Assessment("leftovers", Status.PASS, "did not move", metric) for metric in ("server_fds", "temp_bytes")]
    text = Terminal().text(replace(run, verdict=replace(run.verdict, assessments=tuple(flat))), 80, color=False)
    assert "  pass  leftovers   did not move\n        server_fds\n        temp_bytes\n" in text


def test_it_writes_no_file(tmp_path):
    assert REPORTERS["terminal"]().render(leaking_run(), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0, None, 7], "▁ █"),
        ([0] * 99 + [7], "▁▁▁▁▁▁▁▁▁█"),
        ([], ""),
    ],
)
def test_a_sparkline_keeps_gaps_and_peaks(values, drawn):
    assert sparkline(values, 0, 7, 10) == drawn


def test_a_flat_sparkline_is_flat():
    assert sparkline([5, 5, 5], 5, 5, 10) == "▁▁▁"


def test_growth_is_said_per_load_in_loaded_models_and_in_plain_words():
    finding = replace(LEAK, per="load", footprint_bytes=4 * 1024**2)
    run = leaking_run(finding=finding)
    failed, other = run.verdict.assessments
    told = replace(failed, plain_words="Over 9 treatment cycles 9 MiB stayed in use for good.")
    text = Terminal().text(replace(run, verdict=replace(run.verdict, assessments=(told, other))), 120, color=False)
    assert "1 MiB per load, 95 % interval 512 KiB to 1.5 MiB, 0.25 of a loaded model, host_private_bytes" in text
    assert "In plain words\n  Over 9 treatment cycles 9 MiB stayed in use for good.\n" in text
