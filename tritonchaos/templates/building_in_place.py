"""Model files built where the server will run: by build.py with the Python there, else by the template's build.cc.

Official tritonserver images have a C++ compiler, TensorRT's headers and libraries and a python3, but no TensorRT module
for it that could be counted on; a plan that another TensorRT built is not read by their server.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tritonchaos.errors import TargetError, TemplateError
from tritonchaos.plugins import BuildsFiles

WORKERS: Final = Path(__file__).resolve().parents[1] / "workers"
DEADLINE_S: Final = 900.0
_SCRIPT: Final = "build_in_place.sh"
_SHOWN_LINES: Final = 15


def sources(script: Path) -> list[str]:
    """Texts on which a built file depends: build.py, build.cc and the headers of build.include."""
    return [path.read_text("utf-8") for path in (script, *_beside(script)) if path.is_file()]


def is_build_source(path: Path, script: Path) -> bool:
    """Tell whether a file of a template's folder only serves to build, and is no part of the served model."""
    return path == script or path in _beside(script)


def identify(place: BuildsFiles, script: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """Ask in a place what it would build with.

    Args:
        folder: An empty folder for it.

    Returns:
        "python" or "c++", and what the script told.

    Raises:
        TemplateError: Neither way works; says what both printed.
    """
    told = _run(place, script, folder / "work", ["identify"])
    return (folder / "work" / "way").read_text().strip(), told


def build(place: BuildsFiles, way: str, script: Path, out: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Build a file in a place, the way that `identify` found; gives what the script told.

    Args:
        out: In a folder whose parent holds nothing else.

    Raises:
        TemplateError: It cannot be built.
    """
    work = out.parent.parent / "work"
    arguments = [f"{name}={_spelled(value)}" for name, value in parameters.items()]
    if way == "python":
        arguments = [json.dumps(dict(parameters))]
    told = _run(place, script, work, [way, out.name, *arguments])
    if (work / out.name).is_file():
        (work / out.name).rename(out)
    return told


def last_lines(text: str) -> str:
    """Return the end of what a build printed, without empty lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:])


def _beside(script: Path) -> list[Path]:
    return [script.with_suffix(".cc"), *sorted(script.with_name("build.include").glob("*"))]


def _spelled(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _run(place: BuildsFiles, script: Path, work: Path, arguments: list[str]) -> dict[str, Any]:
    _lay_out(script, work)
    what = f"{script.parent.name}/{script.stem} in {place.build_place()}"
    try:
        exit_code, printed = place.run_to_build(work, ["sh", str(work / _SCRIPT), *arguments], DEADLINE_S)
    except TargetError as error:
        raise TemplateError(f"{what} could not be run: {error.message}", hint=error.hint) from error
    if exit_code is None:
        raise TemplateError(f"{what} did not finish in {DEADLINE_S:.0f} s")
    if exit_code != 0:
        ended = f"signal {-exit_code}" if exit_code < 0 else f"exit status {exit_code}"
        raise TemplateError(f"{what} failed with {ended}:\n{last_lines(printed)}")
    try:
        told: dict[str, Any] = json.loads((work / "told.json").read_text())
    except (OSError, ValueError) as error:
        raise TemplateError(f"{what} gave nothing that can be read:\n{last_lines(printed)}") from error
    return told


def _lay_out(script: Path, work: Path) -> None:
    work.mkdir()
    for file in (WORKERS / _SCRIPT, WORKERS / "build_model.py"):
        shutil.copyfile(file, work / file.name)
    if script.is_file():
        shutil.copyfile(script, work / "build.py")
    if script.with_suffix(".cc").is_file():
        shutil.copyfile(script.with_suffix(".cc"), work / "build.cc")
    if script.with_name("build.include").is_dir():
        shutil.copytree(script.with_name("build.include"), work / "build.include")
