"""Compile our C sources with the system compiler into a cache."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonchaos.errors import TemplateError

WARNINGS: Final = ("-Wall", "-Wextra", "-Werror")
_BASE_FLAGS: Final = ("-std=c11", "-O2", "-g", "-fPIC", "-shared")
# Linked statically, a program runs in any container, whatever C library is in it.
_PROGRAM_FLAGS: Final = ("-std=c11", "-O2", "-static")
_CANDIDATES: Final = ("cc", "gcc", "clang")
_INSTALL: Final = 'install one ("apt-get install gcc libc6-dev", "dnf install gcc") or name one in $CC'
# A compiler that hangs (a broken wrapper, a dead network disk) must not hang us.
DEADLINE_S: Final = 120.0
_SHOWN_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler.

    Attributes:
        command: How it is called.
        version: What it says of its version; of one elsewhere, what names the place where it is.
        run_elsewhere: Runs a command in that place, where a folder has the path that it has here; gives the exit code
            (None: not done in time) and what was printed. None: the compiler is of this machine.
    """

    command: tuple[str, ...]
    version: str
    run_elsewhere: Callable[[Path, Sequence[str]], tuple[int | None, str]] | None = None


def cache_folder() -> Path:
    """Folder for what is built once: $TRITONCHAOS_CACHE, else tritonchaos in $XDG_CACHE_HOME or ~/.cache."""
    own = os.environ.get("TRITONCHAOS_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tritonchaos"


def find_compiler() -> Compiler:
    """Find the C compiler: $CC (with its arguments) if set, else cc, gcc or clang.

    Raises:
        TemplateError: There is none, or the one found does not run.
    """
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise TemplateError(f"the C compiler named by $CC was not found: {named[0]}", hint=_INSTALL)
        return _ask_version(tuple(named))
    for candidate in _CANDIDATES:
        found = shutil.which(candidate)
        if found is not None:
            return _ask_version((found,))
    raise TemplateError(f"no C compiler was found (looked for $CC, {', '.join(_CANDIDATES)})", hint=_INSTALL)


def missing_compiler() -> str | None:
    """Say why there is no C compiler; None when there is one."""
    try:
        find_compiler()
    except TemplateError as error:
        return error.message
    return None


def compile_shared(
    name: str, sources: Sequence[Path], flags: Sequence[str] = (), compiler: Compiler | None = None
) -> Path:
    """Compile C sources into a shared library, unless the cache has it.

    The cache key covers the sources, the headers beside them, the flags and the compiler's version. Any number of
    processes may build the same library at once: each builds its own and renames it into place.

    Args:
        name: The library's name without "lib" and ".so", such as "triton_planted".
        sources: The C files; headers in their folders are found.
        flags: Compiler flags after our own; symbols may stay undefined.
        compiler: None: the one of this machine.

    Returns:
        Path of "lib<name>.so", in a folder that holds nothing else.

    Raises:
        TemplateError: No compiler, a compiler error (with its last lines), or a cache that cannot be written.
    """
    return _compiled(name, f"lib{name}.so", sources, (*_BASE_FLAGS, *flags), compiler or find_compiler())


def compile_program(
    name: str, sources: Sequence[Path], flags: Sequence[str] = (), compiler: Compiler | None = None
) -> Path:
    """Compile C sources into a statically linked program, unless the cache has it; see `compile_shared`.

    Returns:
        Path of the program, in a folder that holds nothing else.
    """
    return _compiled(name, name, sources, (*_PROGRAM_FLAGS, *flags), compiler or find_compiler())


def _compiled(name: str, file: str, sources: Sequence[Path], flags: Sequence[str], compiler: Compiler) -> Path:
    folder = cache_folder() / "native" / f"{name}-{_key(name, sources, flags, compiler)}"
    if not (folder / file).exists():
        try:
            _build_into(folder, file, compiler, sources, flags)
        except OSError as error:
            raise TemplateError(
                f"cannot write the cache {folder.parent}: {error.strerror}", hint="name a folder in $TRITONCHAOS_CACHE"
            ) from error
    return folder / file


def _ask_version(command: tuple[str, ...]) -> Compiler:
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=DEADLINE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TemplateError(f"the C compiler {shlex.join(command)} does not run: {error}", hint=_INSTALL) from error
    if answer.returncode != 0:
        raise TemplateError(
            f"the C compiler {shlex.join(command)} does not run: {_last_lines(answer.stderr)}", hint=_INSTALL
        )
    return Compiler(command, answer.stdout)


def _with_headers(sources: Sequence[Path]) -> list[Path]:
    return [*sources, *sorted({header for source in sources for header in source.parent.glob("*.h")})]


def _key(name: str, sources: Sequence[Path], flags: Sequence[str], compiler: Compiler) -> str:
    digest = hashlib.sha256(repr((name, compiler.command, compiler.version, tuple(flags))).encode())
    for path in _with_headers(sources):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _build_into(folder: Path, library: str, compiler: Compiler, sources: Sequence[Path], flags: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
        built = Path(temporary) / "built"
        built.mkdir()
        _compile(built / library, compiler, sources, flags)
        try:
            built.rename(folder)
        except OSError:
            # Somebody else was first; what they built has the same content.
            if not (folder / library).exists():
                raise


def _compile(library: Path, compiler: Compiler, sources: Sequence[Path], flags: Sequence[str]) -> None:
    laid_out = sources if compiler.run_elsewhere is None else _lay_out(sources, library.parent.parent)
    command = [*compiler.command, *flags, "-o", str(library), *map(str, laid_out)]
    exit_code, printed = (compiler.run_elsewhere or _run_here)(library.parent.parent, command)
    if exit_code is None:
        raise TemplateError(f"the C compiler did not finish in {DEADLINE_S:.0f} s: {shlex.join(command)}")
    if exit_code != 0 or not library.is_file():
        raise TemplateError(
            f"{library.name} did not compile with {shlex.join(compiler.command)}:\n{_last_lines(printed)}",
            hint="a missing standard header means that the C library's development files are missing "
            '("apt-get install libc6-dev"); anything else is a defect of tritonchaos',
        )


def _run_here(_: Path, command: Sequence[str]) -> tuple[int | None, str]:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        return None, ""
    return answer.returncode, answer.stderr


def _lay_out(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Copy sources and headers into the one folder that a compiler elsewhere sees."""
    for path in _with_headers(sources):
        shutil.copyfile(path, folder / path.name)
    return [folder / source.name for source in sources]


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_SHOWN_LINES:])
