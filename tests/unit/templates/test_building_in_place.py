"""Model files built where a server's own installation is: here that place is a folder of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tritonchaos.errors import TargetError, TemplateError
from tritonchaos.plugins import BuildsFiles
from tritonchaos.shipped import shipped_folder
from tritonchaos.templates import Machine, find_template
from tritonchaos.templates.building import build_model_file, find_builder

STAND_IN = Path(__file__).parents[2] / "tensorrt_stand_in"
IDENTITY = shipped_folder("model_templates") / "identity" / "tensorrt" / "build.py"
PARAMETERS = {"datatype": "FP16", "dims": [3, -1], "max_batch_size": 4}
BY_PYTHON = """
def identify():
    return {"library": "lib", "version": "1.2", "device": "cpu"}
def build(out, parameters):
    out.write_text(f"by Python: {parameters['size']}")
    return {"size": parameters["size"]}
"""
NO_MODULE = "import no_such_module_anywhere\n"
BY_CPP = r"""
#include <cstdio>
#include <cstring>
// flags: -DMINOR=4
int main(int count, char** words) {
    if (std::strcmp(words[1], "build") == 0) {
        std::FILE* out = std::fopen(words[2], "w");
        std::fprintf(out, "by C++: %s", words[3]);
        std::fclose(out);
    }
    std::puts("for people");
    std::printf("{\"library\": \"lib\", \"version\": \"3.%d\", \"device\": \"cpu\"}\n", MINOR);
}
"""


@dataclass
class Place:
    """A place to build in that is this machine, with an environment of its own."""

    name: str = "image-1"
    env: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def build_place(self) -> str:
        return self.name

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        self.calls.append(command[2])
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **self.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=deadline_s,
            check=False,
        )
        return done.returncode, done.stdout.decode()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def tensorrt(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with the stand-in for TensorRT's header and library, and no Python module of it."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("tensorrt")
    library = folder / "libnvinfer.so.10"
    headers = ["-I", str(STAND_IN), "-idirafter", str(IDENTITY.with_name("build.include"))]
    subprocess.run(
        ["g++", "-std=c++17", "-shared", "-fPIC", *headers, "-o", str(library), str(STAND_IN / "nvinfer.cc")],
        check=True,
    )
    # A python3 that has nothing but the standard library.
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec {shutil.which("python3")} -I -S "$@"\n')
    python.chmod(0o755)
    env = {
        "CPLUS_INCLUDE_PATH": str(STAND_IN),
        "LD_LIBRARY_PATH": str(folder),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    return Place(env=env)


def write(folder: Path, python: str | None = None, cpp: str | None = None) -> Path:
    folder.mkdir()
    for name, text in (("build.py", python), ("build.cc", cpp)):
        if text is not None:
            (folder / name).write_text(text)
    return folder / "build.py"


def test_python_is_tried_first_and_everything_is_built_once_for_a_place(tmp_path: Path) -> None:
    script, place = write(tmp_path / "both", BY_PYTHON, BY_CPP), Place()
    built = build_model_file(script, "model.plan", {"size": 3}, place)
    assert (built.file.read_text(), built.facts) == ("by Python: 3", {"size": 3})
    assert find_builder(script, place).way == "python"
    assert build_model_file(script, "model.plan", {"size": 3}, place) == built
    assert place.calls == ["identify", "python"]
    assert build_model_file(script, "model.plan", {"size": 3}, Place("image-2")).file != built.file


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler")
def test_without_its_module_the_cpp_program_is_compiled_and_run(tmp_path: Path) -> None:
    script, place = write(tmp_path / "both", NO_MODULE, BY_CPP), Place()
    built = build_model_file(script, "model.plan", {"dims": [3, -1]}, place)
    assert built.file.read_text() == "by C++: dims=3,-1"
    assert find_builder(script, place).version == "3.4"
    assert place.calls == ["identify", "c++"]


def test_where_neither_way_works_both_reasons_are_told(tmp_path: Path, cache: Path) -> None:
    script = write(tmp_path / "both", NO_MODULE, '#error "no header"\n')
    with pytest.raises(TemplateError, match=r"(?s)both/build in image-1 failed.*no_such_module_anywhere") as caught:
        find_builder(script, Place())
    assert "no header" in caught.value.message or "no C++ compiler" in caught.value.message
    assert not list((cache / "builders").iterdir())


def test_without_a_cpp_program_the_python_error_is_told(tmp_path: Path) -> None:
    script = write(tmp_path / "python", NO_MODULE)
    with pytest.raises(TemplateError, match="no_such_module_anywhere"):
        find_builder(script, Place())


class Broken(Place):
    """A place in which nothing can be run."""

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        raise TargetError("the engine is gone", hint="start it")


class Slow(Place):
    """A place in which nothing is done in time."""

    def run_to_build(self, folder: Path, command: Sequence[str], deadline_s: float) -> tuple[int | None, str]:
        return None, ""


@pytest.mark.parametrize(("place", "told"), [(Broken(), "the engine is gone"), (Slow(), "did not finish")])
def test_a_place_that_fails_is_an_error_of_the_template(tmp_path: Path, place: Place, told: str) -> None:
    with pytest.raises(TemplateError, match=told):
        find_builder(write(tmp_path / "python", BY_PYTHON), place)


def test_the_identity_engine_is_built_by_its_cpp_program(tensorrt: Place) -> None:
    builder = find_builder(IDENTITY, tensorrt)
    assert (builder.library, builder.version, builder.way) == ("tensorrt", "10.13.3", "c++")
    if builder.device != "cpu":
        pytest.skip("the stand-in reads no plan back, as would be done beside a GPU")
    built = build_model_file(IDENTITY, "model.plan", PARAMETERS, tensorrt)
    assert built.file.read_text().splitlines() == [
        "flags 2",
        "INPUT 1 -1x3x-1",
        "OUTPUT 1 -1x3x-1",
        "profile INPUT 0 1x3x1",
        "profile INPUT 1 4x3x64",
        "profile INPUT 2 4x3x64",
    ]
    tensors = [{"name": name, "datatype": "HALF", "dims": [-1, 3, -1]} for name in ("INPUT", "OUTPUT")]
    assert built.facts["tensors"] == tensors


def test_a_datatype_that_tensorrt_lacks_is_named(tensorrt: Place) -> None:
    with pytest.raises(TemplateError, match="TensorRT has no datatype UINT64; it has BF16, BOOL"):
        build_model_file(IDENTITY, "model.plan", {**PARAMETERS, "datatype": "UINT64"}, tensorrt)


def test_the_identity_template_is_served_with_what_was_built_in_place(tensorrt: Place) -> None:
    machine = Machine(frozenset({"tensorrt"}), has_gpu=True, place=tensorrt)
    template = find_template("identity")
    variant, _ = template.choose_variant(machine)
    assert variant == "tensorrt"
    if find_builder(IDENTITY, tensorrt).device != "cpu":
        pytest.skip("the stand-in reads no plan back, as would be done beside a GPU")
    served = template.serve("ident", {"dims": [16]}, variant, machine.place)
    assert sorted(served.files) == ["1/model.plan", "config.pbtxt"]


def test_a_place_is_an_ability_of_a_target() -> None:
    assert isinstance(Place(), BuildsFiles)
