"""Our C code for an image, compiled in a place that is this machine: where it is compiled, and what is told of that."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tritonchaos.containers.compiling import Compiling
from tritonchaos.errors import TargetError, TemplateError
from tritonchaos.native import find_compiler, missing_compiler
from tritonchaos.plugins import CompilesLibraries
from tritonchaos.templates import Machine, find_template

needs_compiler = pytest.mark.skipif(missing_compiler() is not None, reason=f"{missing_compiler()}")
NO_COMPILER = "the image has no C compiler"


@dataclass
class Place:
    """A place to compile in that is this machine; `compiler` is what its image has."""

    compiler: str = ""
    name: str = "sha256:1"
    folders: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.compiling = Compiling(self.compiler, self.name, self.run_to_build)

    def build_place(self) -> str:
        return self.name

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        self.folders.append(folder)
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=deadline_s)
        except OSError as error:
            raise TargetError(f"the engine refused: {error.strerror}") from error
        return done.returncode, done.stdout + done.stderr

    def missing_compiler(self) -> str | None:
        return self.compiling.missing_compiler()

    def compile_shared(self, name: str, sources: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        return self.compiling.compile_shared(name, sources, flags)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "value.h").write_text("#define VALUE 7\n")
    file = tmp_path / "sources" / "value.c"
    file.write_text('#include "value.h"\nint value(void) { return VALUE; }\n')
    return file


def with_compiler(name: str = "sha256:1") -> Place:
    return Place(find_compiler().command[0], name)


@needs_compiler
def test_a_library_is_compiled_in_the_image_once(source: Path, cache: Path) -> None:
    place = with_compiler()
    library = place.compile_shared("value", [source])
    assert ctypes.CDLL(str(library)).value() == 7
    assert with_compiler().compile_shared("value", [source]) == library
    assert place.compiling.facts() == {"compiled": "value in a container of the image"}
    assert place.compiling.notes() == []
    assert len(place.folders) == 1
    assert not place.folders[0].exists()
    assert [path.name for path in library.parent.iterdir()] == [library.name]


@needs_compiler
def test_image_sources_and_flags_each_make_another_library(source: Path) -> None:
    paths = [with_compiler(name).compile_shared("value", [source]) for name in ("sha256:1", "sha256:2")]
    paths.append(with_compiler().compile_shared("value", [source], ["-DOTHER"]))
    paths.append(Place().compile_shared("value", [source]))
    source.with_name("value.h").write_text("#define VALUE 8\n")
    paths.append(with_compiler().compile_shared("value", [source]))
    assert len(set(paths)) == 5


@needs_compiler
def test_a_program_is_compiled_in_the_image_too(tmp_path: Path) -> None:
    file = tmp_path / "three.c"
    file.write_text("int main(void) { return 3; }")
    place = with_compiler()
    program = place.compiling.compile_program("three", [file])
    assert subprocess.run([program]).returncode == 3
    assert len(place.folders) == 1


@needs_compiler
def test_for_an_image_without_a_compiler_it_is_compiled_here_and_that_is_told(source: Path) -> None:
    place = Place()
    assert ctypes.CDLL(str(place.compile_shared("value", [source]))).value() == 7
    assert place.folders == []
    assert place.compiling.facts() == {"compiled": "value on this machine"}
    assert place.compiling.notes() == [f"value was compiled on this machine: {NO_COMPILER}"]


@needs_compiler
@pytest.mark.parametrize(
    ("compiler", "why"), [("false", "did not compile with false"), ("/no/such/cc", "the engine refused: No such file")]
)
def test_what_does_not_compile_in_the_image_is_compiled_here(source: Path, compiler: str, why: str) -> None:
    place = Place(compiler)
    assert ctypes.CDLL(str(place.compile_shared("value", [source]))).value() == 7
    assert why in place.compiling.notes()[0]


def test_without_any_compiler_both_are_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/no/such/cc")
    place = Place()
    with pytest.raises(TemplateError, match=f"was not found: /no/such/cc; {NO_COMPILER}"):
        place.compile_shared("value", [source])
    assert place.compiling.facts() == {}
    identity = find_template("identity")
    machine = Machine(frozenset({"python"}), has_gpu=False, place=place)
    chosen, skipped = identity.choose_variant(machine)
    assert chosen == "python"
    assert dict(skipped)["planted"].endswith("/no/such/cc, and the image has none")


@needs_compiler
def test_the_planted_backend_is_compiled_in_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    place = with_compiler()
    monkeypatch.setenv("CC", "/no/such/cc")
    assert isinstance(place, CompilesLibraries)
    identity = find_template("identity")
    assert identity.choose_variant(Machine(frozenset(), has_gpu=False, place=place))[0] == "planted"
    served = identity.serve("ident", {"datatype": "FP32", "dims": [4]}, "planted", place)
    assert (served.backends["planted"] / "libtriton_planted.so").is_file()
    assert place.compiling.facts() == {"compiled": "triton_planted in a container of the image"}
