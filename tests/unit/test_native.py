from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tritonchaos
from tritonchaos.errors import TemplateError
from tritonchaos.native import cache_folder, compile_shared, find_compiler, missing_compiler

PLANTED = Path(tritonchaos.__file__).parent / "planted"
needs_compiler = pytest.mark.skipif(missing_compiler() is not None, reason=f"{missing_compiler()}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(folder))
    return folder


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# --- the compiler -----------------------------------------------------------------------------------


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TemplateError, match="no C compiler") as caught:
        compile_shared("x", [write(tmp_path / "x.c", "int x;")])
    assert "apt-get install gcc" in caught.value.hint


def test_a_compiler_that_is_named_has_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(TemplateError, match=r"named by \$CC was not found: no-such-compiler"):
        find_compiler()
    assert "no-such-compiler" in str(missing_compiler())


def test_a_compiler_that_does_not_run_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    assert "does not run" in str(missing_compiler())


@needs_compiler
def test_cc_keeps_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = find_compiler()
    monkeypatch.setenv("CC", f"{plain.command[0]} -pipe")
    assert find_compiler().command == (plain.command[0], "-pipe")


def test_the_cache_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRITONCHAOS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/tritonchaos"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/tritonchaos"


# --- the cache --------------------------------------------------------------------------------------


@needs_compiler
def test_what_is_cached_is_not_built_again(tmp_path: Path) -> None:
    source = write(tmp_path / "seven.c", "int seven(void) { return 7; }")
    first = compile_shared("seven", [source])
    made = first.stat().st_ino
    assert ctypes.CDLL(str(first)).seven() == 7
    assert compile_shared("seven", [source]) == first
    assert first.stat().st_ino == made
    assert [path.name for path in first.parent.iterdir()] == ["libseven.so"]


@needs_compiler
def test_source_header_and_flags_each_make_another_library(tmp_path: Path) -> None:
    header = write(tmp_path / "value.h", "#define VALUE 1\n")
    source = write(tmp_path / "value.c", '#include "value.h"\nint value(void) { return VALUE; }\n')
    paths = [compile_shared("value", [source]), compile_shared("value", [source], ["-DOTHER"])]
    header.write_text("#define VALUE 2\n")
    paths.append(compile_shared("value", [source]))
    source.write_text(source.read_text() + "\n")
    paths.append(compile_shared("value", [source]))
    assert len(set(paths)) == 4
    assert [ctypes.CDLL(str(path)).value() for path in paths] == [1, 1, 2, 2]


@needs_compiler
def test_many_may_build_the_same_at_once(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "one.c", "int one(void) { return 1; }")
    code = (
        "import sys; from pathlib import Path; from tritonchaos.native import compile_shared\n"
        "print(compile_shared('one', [Path(sys.argv[1])]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "one.c")]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: subprocess.run(command, capture_output=True, text=True), range(4)))
    assert {answer.returncode for answer in answers} == {0}, answers[0].stderr
    assert len({answer.stdout for answer in answers}) == 1
    assert len(list((cache / "native").iterdir())) == 1


@needs_compiler
def test_a_compiler_error_shows_its_last_lines_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    source = write(tmp_path / "broken.c", "int broken(void) { return no_such_name; }")
    with pytest.raises(TemplateError, match="no_such_name"):
        compile_shared("broken", [source])
    assert list((cache / "native").iterdir()) == []


@needs_compiler
def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file, not a folder")
    with pytest.raises(TemplateError, match="cannot write the cache") as caught:
        compile_shared("one", [write(tmp_path / "one.c", "int one;")])
    assert "TRITONCHAOS_CACHE" in caught.value.hint


# --- our C ------------------------------------------------------------------------------------------


@needs_compiler
def test_the_planted_backend_compiles_without_a_warning_and_exports_entry_points_only() -> None:
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fvisibility=hidden"]
    library = compile_shared("triton_planted", sorted(PLANTED.glob("*.c")), flags)
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("nm cannot be run")
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert exported == {
        "TRITONBACKEND_Initialize",
        "TRITONBACKEND_ModelInitialize",
        "TRITONBACKEND_ModelFinalize",
        "TRITONBACKEND_ModelInstanceInitialize",
        "TRITONBACKEND_ModelInstanceFinalize",
        "TRITONBACKEND_ModelInstanceExecute",
    }


def test_every_c_file_is_small() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in PLANTED.iterdir()}
    assert {name for name, lines in sizes.items() if lines >= 300} == set()


@needs_compiler
@pytest.mark.parametrize(("major", "answer"), [(1, "None"), (2, "planted: this server has TRITONBACKEND API 2.7")])
def test_another_major_api_version_is_an_error_not_a_crash(tmp_path: Path, major: int, answer: str) -> None:
    planted = compile_shared("triton_planted", sorted(PLANTED.glob("*.c")), ["-fvisibility=hidden"])
    server = compile_shared("pretended_server", [write(tmp_path / "pretended_server.c", pretended_server(major))])
    # A process of its own: the pretended server's names would stay global in this one.
    code = (
        "import ctypes, sys\n"
        "ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\n"
        "initialize = ctypes.CDLL(sys.argv[2]).TRITONBACKEND_Initialize\n"
        "initialize.restype = ctypes.c_char_p\n"
        "print(initialize(None))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(server), str(planted)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert answer in run.stdout


def pretended_server(major: int) -> str:
    """C source of a server in which every function does nothing, and an error is its own text."""
    names = set(re.findall(r"(TRITON(?:BACKEND|SERVER)_\w+)\(", (PLANTED / "triton_api.h").read_text()))
    own = {"TRITONBACKEND_ApiVersion", "TRITONSERVER_ErrorNew"}
    return "\n".join(
        [
            "#include <stdint.h>",
            "#include <string.h>",
            "void *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor)",
            f"{{ *major = {major}; *minor = 7; return 0; }}",
            "void *TRITONSERVER_ErrorNew(int code, const char *text) { (void)code; return strdup(text); }",
            *(f"void {name}(void) {{}}" for name in sorted(names - own)),
        ]
    ).replace("#include <stdint.h>", "#define _DEFAULT_SOURCE\n#include <stdint.h>", 1)


PROBE = """
#include <string.h>
#include "json.h"
/* 0: not JSON; 1: JSON; 2: JSON whose root is a string, copied out. */
int probe(const char *text, size_t length, char *out)
{
    struct json json;
    int result = json_parse(&json, text, length);
    char *string = result ? json_string(&json, 0) : 0;
    if (string) {
        strcpy(out, string);
        result = 2;
    }
    int64_t value;
    json_integer(&json, json_first(&json, json_member(&json, json.count ? 0 : -1, "dims")), &value);
    json_free(&json);
    return result;
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], tuple[int, bytes]]:
    if why := missing_compiler():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("probe")
    before = os.environ.get("TRITONCHAOS_CACHE")
    os.environ["TRITONCHAOS_CACHE"] = str(folder / "cache")
    try:
        source = write(folder / "probe.c", PROBE)
        library = ctypes.CDLL(str(compile_shared("probe", [source, PLANTED / "json.c"], [f"-I{PLANTED}"])))
    finally:
        os.environ.pop("TRITONCHAOS_CACHE")
        if before is not None:
            os.environ["TRITONCHAOS_CACHE"] = before

    def call(text: bytes) -> tuple[int, bytes]:
        out = ctypes.create_string_buffer(len(text) + 16)
        return library.probe(text, ctypes.c_size_t(len(text)), out), out.value

    return call


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(value=JSON_VALUES)
@example(value={"dims": ["16777216", -1]})
def test_our_reader_takes_every_json_text(probe: Callable[[bytes], tuple[int, bytes]], value: object) -> None:
    assert probe(json.dumps(value).encode())[0] in (1, 2)
    assert probe(json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "replace"))[0] in (1, 2)


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=["Cs"])))
@example(text='quo"te\\back\n\t/')
def test_our_reader_resolves_escapes(probe: Callable[[bytes], tuple[int, bytes]], text: str) -> None:
    assert probe(json.dumps(text).encode()) == (2, text.encode())


@settings(max_examples=300, deadline=None)
@given(text=st.binary(max_size=60) | st.text('[]{}",:\\u0123 tru-', max_size=60).map(str.encode))
@example(text=b"[" * 5000)
@example(text=b'"\\')
@example(text=b'"\\u00"')
@example(text=b'{"a":')
def test_our_reader_survives_any_bytes(probe: Callable[[bytes], tuple[int, bytes]], text: bytes) -> None:
    assert probe(text)[0] in (0, 1, 2)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1,]", b'{"a" 1}', b'{"a":1,}', b"[1] 2", b'"open', b"[" * 100 + b"]" * 100]
)
def test_our_reader_refuses_what_is_not_json(probe: Callable[[bytes], tuple[int, bytes]], text: bytes) -> None:
    assert probe(text)[0] == 0
