"""A clock that is set back while a run goes on must not matter: durations come from CLOCK_MONOTONIC alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tritonchaos

PACKAGE = Path(tritonchaos.__file__).parent
# Stamps in names of folders and in the facts of a run, each taken once; and the age of a file's stamp, where
# a clock that was set back makes a stamp look young, and what is young is read again.
MAY_READ_WALL_TIME = {
    "cli/calibrate.py",
    "repository/archive.py",
    "running.py",
    "running_sets/running.py",
    "samplers/host.py",
}
WALL_TIME = {("time", "time"), ("time", "time_ns"), ("time", "localtime"), ("time", "gmtime"), ("datetime", "now")}


def wall_time_reads(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in WALL_TIME:
                yield f"{node.value.id}.{node.attr}", node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (
                (f"from time import {name.name}", node.lineno) for name in node.names if name.name != "monotonic"
            )


def test_nothing_measures_with_wall_time() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in MAY_READ_WALL_TIME
        for name, line in wall_time_reads(path)
    }
    assert found == set()


def test_the_modules_that_may_read_wall_time_do() -> None:
    assert all(list(wall_time_reads(PACKAGE / name)) for name in MAY_READ_WALL_TIME)
