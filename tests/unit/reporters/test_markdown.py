from dataclasses import replace

import pytest

from tests.finished_runs import LEAK, leaking_run
from tritonchaos.reporters.markdown import Markdown, text
from tritonchaos.reporters.markdown_text import code, fenced, plain

REPORT = """\
# FINDINGS: 1 leak, 4 cycles

Scenario `failed-load`, run `run-1`, seed 1, exit code 1.

- model ident was served by variant planted (a stand-in, not TensorRT)

## Findings

### 1. leak: host_private_bytes grows with each failed load

- growth: 1 MiB per cycle (95 % interval 512 KiB to 1.5 MiB)
- metric: `host_private_bytes`
- first seen: wrong, cycle 3, step 0 (load ident), 1 in all
- all that happened there: `tritonchaos show . --phase wrong --cycle 3`
- found by `memory_growth`, kind leak, id `IDENTITY`

```text
cycle 0: 102 MiB
cycle 1: 103 MiB
cycle 2: 104 MiB
cycle 3: 105 MiB
cycle 4: 106 MiB
cycle 5: 107 MiB
```

## Checks

| check | metric | status | verdict | cycles | why |
| --- | --- | --- | --- | --- | --- |
| `memory_growth` | `host_private_bytes` | fail | LEAK | 3 | steps of 1 MiB |
| `memory_growth` | `host_pss_bytes` | unknown (does not count) | INCONCLUSIVE |  | not read |

## Post-unload readings

Each reading is the median of the last 3 samples of a cycle, when its models are gone. \
The baseline is the reading with the server ready and no model loaded.

### `host_private_bytes`

| phase | arm | cycle | load | unload | used (MiB) | delta to baseline (MiB) |  |
| --- | --- | --- | --- | --- | --- | --- | --- |
| `baseline` | control | 0 | `200` | `200` | 101.000 | +1.000 |  |
| `wrong` | treatment | 0 | REFUSED | `200` | 102.000 | +2.000 |  |
| `wrong` | treatment | 1 | REFUSED | `200` | 103.000 | +3.000 |  |
| `wrong` | treatment | 2 | REFUSED | `200` | 104.000 | +4.000 |  |

## Cycles that did what they should

| phase | arm | warm-up | cycles | as expected | first that was not |
| --- | --- | --- | --- | --- | --- |
| `baseline` | control | 0 | 1 | 1 |  |
| `wrong` | treatment | 0 | 3 | 3 |  |

## Named readings

Memory in MiB, everything else as a count; of several readings of one name the first.

| metric | ready | after_exit |
| --- | --- | --- |
| `host_private_bytes` | 100.000 |  |
| `nvml_device_used_bytes` |  | 3.000 |
| `server_fds` |  | 0 |

## Server and machine

| fact | value |
| --- | --- |
| target | `local` |
| triton_version | `2.51.0` |
| server starts | `1` |
| run started | `2026-01-01T00:00:00Z` |
| tritonchaos | `0.1.0` |

## Notes

- model ident was served by variant planted (a stand-in, not TensorRT)
- nobody else uses it

## How to reproduce

In this folder, which holds the scenario as it was run:

```text
tritonchaos run scenario.yaml --seed 1
```
"""
REFUSED = "`400: unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32`"


def test_the_whole_report(tmp_path):
    assert Markdown().render(leaking_run(), tmp_path) == [tmp_path / "report.md"]
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert report == REPORT.replace("REFUSED", REFUSED).replace("IDENTITY", LEAK.id)


def test_a_long_phase_is_shortened():
    report = text(leaking_run(treatment_cycles=300))
    assert "| `wrong` | treatment | … 280 more |  |  | 112.000 to 391.000 |  |  |" in report
    assert "| `wrong` | treatment | 9 |" in report
    assert "| `wrong` | treatment | 10 |" not in report
    assert "| `wrong` | treatment | 290 |" in report
    assert "All measured cycles are in `results.json`." in report


def test_a_finding_says_whether_it_is_known_undocumented_or_does_not_count():
    report = text(leaking_run(finding=replace(LEAK, known="https://x.org/1", undocumented=True, counts=False)))
    assert "- already known: https://x.org/1\n" in report
    assert "- the step that led here goes outside Triton's documented rules\n" in report
    assert "- it does not count for the exit code\n" in report


def test_much_evidence_is_shortened():
    report = text(leaking_run(finding=replace(LEAK, evidence=tuple(f"line {number}" for number in range(50)))))
    assert "line 39\n... and 10 more lines\n```" in report


def test_details_are_folded_away():
    details = ("server 7: 1 of 2 threads did not move", "  1 thread (7): poll < main")
    printed = text(leaking_run(finding=replace(LEAK, details=details)))
    folded = printed[printed.index("<details>") : printed.index("</details>")]
    assert "<summary>server 7: 1 of 2 threads did not move</summary>" in folded
    assert "poll < main" in folded


def test_text_of_the_server_cannot_become_markup():
    evil = "a | b `c` <script>\n# heading @team *x*"
    report = text(
        leaking_run(finding=replace(LEAK, title=evil, evidence=(evil, "```", "/tmp/secret/run/x")), note=evil)
    )
    assert "<script>" not in report.replace("a | b `c` <script>\n# heading @team *x*\n```\nx\n````", "")
    assert "leak: a \\| b \\`c\\` &lt;script&gt; #" in report
    assert "\n````text\n" in report
    assert "secret" not in report


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        ("host_private_bytes", "host_private_bytes"),
        ("_a_ [x](y) ![i]", "\\_a\\_ \\[x\\](y) \\!\\[i\\]"),
        ("a|b\nc", "a\\|b c"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("# heading", "\\# heading"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("1.5 MiB", "1\\.5 MiB"),
        ("server#8969 and @me", "server#&#8203;8969 and @&#8203;me"),
        ("\x1b[31m", "\ufffd\\[31m"),
    ],
)
def test_plain_text_shows_as_it_is(found, printed):
    assert plain(found) == printed


@pytest.mark.parametrize(
    ("found", "printed"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`"), ("a\nb", "`a b`")],
)
def test_code_shows_as_it_is(found, printed):
    assert code(found) == printed


def test_a_block_of_code_cannot_be_left():
    assert fenced(["a", "````\n# out"]) == "`````text\na\n````\n# out\n`````"


def test_growth_is_said_per_load_in_loaded_models_and_in_plain_words():
    run = leaking_run(finding=replace(LEAK, per="load", footprint_bytes=4 * 1024**2))
    failed, other = run.verdict.assessments
    told = replace(failed, plain_words="Over 9 treatment cycles 9 MiB stayed in use for good.")
    report = text(replace(run, verdict=replace(run.verdict, assessments=(told, other))))
    assert "- growth: 1 MiB per load (95 % interval 512 KiB to 1.5 MiB), 0.25 of a loaded model\n" in report
    assert "### In plain words\n\n- `host_private_bytes`: Over 9 treatment cycles 9 MiB stayed in use" in report
