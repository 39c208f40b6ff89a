"""Calls the command line within this process, which is quicker; errors end as `main` ends them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from tritonchaos.cli.app import app
from tritonchaos.errors import TritonChaosError


@dataclass(frozen=True)
class Called:
    returncode: int
    stdout: str
    stderr: str


def tritonchaos(*arguments: str | Path, cwd: Path, env: Mapping[str, str | None] | None = None) -> Called:
    with _within(cwd):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=env)
    error = result.exception
    if isinstance(error, TritonChaosError):
        return Called(int(error.exit_code), result.stdout, f"{result.stderr}tritonchaos: {error}\n")
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Called(result.exit_code, result.stdout, result.stderr)


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
