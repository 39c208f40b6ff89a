from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from io import BytesIO

import pytest
from typer.testing import CliRunner

from tests.builders import CONTROL, TREATMENT, make_cycle, run
from tests.finished_runs import HOST, LEAK, leaking_run
from tritonchaos.cli.app import app
from tritonchaos.errors import UsageError
from tritonchaos.observations import PhaseFacts
from tritonchaos.plotting import Format, draw
from tritonchaos.reporters.pictures import Png, Svg
from tritonchaos.summary import FinishedRun, finish
from tritonchaos.units import MIB
from tritonchaos.verdict import Assessment, Status, Verdict

pytest.importorskip("matplotlib", reason="comes with the extra `plots`")


def pixels(png: bytes):
    from matplotlib.image import imread

    return imread(BytesIO(png), format="png")


def svg_texts(svg: bytes) -> str:
    """Texts of the drawing; matplotlib draws letters as shapes and names each text in a comment."""
    ElementTree.fromstring(svg)
    return svg.decode()


def mixed_run(cycles: int, **finding) -> FinishedRun:
    """Coin-ordered pairs, a restart, an excluded cycle and a warm-up cycle."""
    events = []
    for cycle in range(cycles):
        arm = TREATMENT if cycle % 2 else CONTROL
        more = {"is_warm_up": cycle < 2, "start": 1 + cycle // (cycles // 2)}
        events += make_cycle({HOST: MIB * (100 + cycle)}, phase="pairs $x_1$", arm=arm, cycle=cycle, **more)
    found = replace(LEAK, **finding)
    failed = Assessment("memory_growth", Status.FAIL, "steps", HOST, "LEAK", "steps", 3, None, (found,))
    history = run().add(*events).history(phases=(PhaseFacts("pairs $x_1$", None, "cycles", cycles),))
    return finish(history, Verdict(Status.FAIL, (failed,), (found,)), 1)


def test_a_png_shows_arms_and_estimate_in_their_colours() -> None:
    image = pixels(draw(leaking_run(treatment_cycles=8), Format.PNG))
    height, width, _ = image.shape
    assert (width, height) == (1170, 624)
    for color in ("#2166ac", "#c2570c", "#c21f2f"):
        wanted = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        assert (abs(image[:, :, :3] - wanted).max(axis=2) < 0.02).any(), color


def test_an_svg_names_verdict_metric_and_phases_and_is_the_same_again() -> None:
    finished = leaking_run(treatment_cycles=8)
    svg = draw(finished, Format.SVG)
    assert svg == draw(finished, Format.SVG)
    texts = svg_texts(svg)
    for text in (
        "FINDINGS: 1 leak, 9 cycles",
        "LEAK of 1 MiB per cycle",
        "wrong",
        "treatment arm",
        "estimate, 95 % interval",
    ):
        assert text in texts


def test_pairs_restarts_and_cycles_that_do_not_count_are_drawn() -> None:
    texts = svg_texts(draw(mixed_run(20), Format.SVG))
    assert "control, not judged" in texts
    assert "pairs $x_1$" in texts  # shown as it is, not as a formula


@pytest.mark.parametrize("title", ["$", "$\\frac{1}{2}$ <b>", "a\x1b[31m\x00 --> ]]>", "\udcff", "x" * 5000])
def test_any_text_can_be_drawn(title: str) -> None:
    assert svg_texts(draw(mixed_run(4, title=title), Format.SVG)).startswith("<?xml")
    assert draw(mixed_run(4, title=title), Format.PNG).startswith(b"\x89PNG")


def test_a_run_without_readings_has_no_picture_and_says_so() -> None:
    nothing = finish(run().start().history(), Verdict(Status.UNKNOWN, (), ()), 3)
    with pytest.raises(UsageError, match="no cycle of this run has a post-unload reading"):
        draw(nothing, Format.PNG)


def test_pictures_are_files_beside_the_other_reports(tmp_path) -> None:
    assert Png().render(leaking_run(), tmp_path) == [tmp_path / "post_unload.png"]
    assert Svg().render(leaking_run(), tmp_path) == [tmp_path / "post_unload.svg"]
    assert {path.name for path in tmp_path.iterdir()} == {"post_unload.png", "post_unload.svg"}


def test_an_unknown_format_is_refused() -> None:
    asked = CliRunner().invoke(app, ["report", "somewhere", "--format", "jpeg"])
    assert asked.exit_code == 2
