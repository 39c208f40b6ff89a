"""Writes post_unload.png and post_unload.svg, where they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tritonchaos.plotting import Format, draw
from tritonchaos.plugins import REPORTERS
from tritonchaos.summary import FinishedRun


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Png:
    """post_unload.png: the curve of each judged metric with the verdict, for a chat (extra `plots`)."""

    name: ClassVar[str] = "png"
    by_default: ClassVar[bool] = False

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return _written(run, out, Format.PNG)


@REPORTERS.register
@dataclass(frozen=True, slots=True)
class Svg:
    """post_unload.svg: the same as a drawing without pixels (extra `plots`)."""

    name: ClassVar[str] = "svg"
    by_default: ClassVar[bool] = False

    def render(self, run: FinishedRun, out: Path) -> list[Path]:
        return _written(run, out, Format.SVG)


def _written(run: FinishedRun, out: Path, file_format: Format) -> list[Path]:
    path = out / f"post_unload.{file_format.value}"
    path.write_bytes(draw(run, file_format))
    return [path]
