"""Our own C code for an image: compiled in a container of that image where it has a compiler, else on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from tritonchaos import native
from tritonchaos.errors import TargetError, TemplateError
from tritonchaos.native import Compiler

Build = Callable[[Path, Sequence[str], float], tuple[int | None, str]]
_IN_IMAGE: Final = "in a container of the image"


class _Compile(Protocol):
    def __call__(self, name: str, sources: Sequence[Path], flags: Sequence[str], compiler: Compiler | None) -> Path: ...


class Compiling:
    """Compiles for one image, and remembers where each of our libraries and programs was compiled.

    Args:
        compiler: Path of the C compiler in the image; "": it has none.
        image_id: Names the content of the image for good.
        run: Runs a command in a container of the image, with a folder that it may write and a deadline in seconds;
            gives the exit code and what was printed. The container is gone when it returns.
    """

    def __init__(self, compiler: str, image_id: str, run: Build) -> None:
        self._there = Compiler((compiler,), image_id, partial(_run, run)) if compiler else None
        self._in_image: set[str] = set()
        self._here: dict[str, str] = {}

    def missing_compiler(self) -> str | None:
        """Say why nothing can be compiled; None if it can."""
        if self._there is not None:
            return None
        missing = native.missing_compiler()
        return missing and f"{missing}, and the image has none"

    def compile_shared(self, name: str, sources: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        """Compile a shared library, unless the cache has it; see `native.compile_shared`.

        Raises:
            TemplateError: It can be compiled neither in the image nor on this machine.
        """
        return self._compile(native.compile_shared, name, sources, flags)

    def compile_program(self, name: str, sources: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        """Compile a statically linked program, unless the cache has it; see `compile_shared`."""
        return self._compile(native.compile_program, name, sources, flags)

    def facts(self) -> Mapping[str, str]:
        """Where what was asked for so far was compiled, for the report."""
        told = {_IN_IMAGE: sorted(self._in_image), "on this machine": sorted(self._here)}
        compiled = "; ".join(f"{', '.join(names)} {where}" for where, names in told.items() if names)
        return {"compiled": compiled} if compiled else {}

    def notes(self) -> list[str]:
        """Why something was compiled on this machine and not in the image."""
        return [f"{name} was compiled on this machine: {why}" for name, why in sorted(self._here.items())]

    def _compile(self, compile_: _Compile, name: str, sources: Sequence[Path], flags: Sequence[str]) -> Path:
        why_not = "the image has no C compiler"
        if self._there is not None:
            try:
                compiled = compile_(name, sources, flags, self._there)
            except TemplateError as error:
                why_not = f"in the image, {error.message}"
            else:
                self._in_image.add(name)
                return compiled
        try:
            compiled = compile_(name, sources, flags, None)
        except TemplateError as error:
            raise TemplateError(f"{error.message}; {why_not}", hint=error.hint) from error
        self._here[name] = why_not
        return compiled


def _run(run: Build, folder: Path, command: Sequence[str]) -> tuple[int | None, str]:
    try:
        return run(folder, command, native.DEADLINE_S)
    except TargetError as error:
        raise TemplateError(f"the container to compile in could not be run: {error.message}") from error
