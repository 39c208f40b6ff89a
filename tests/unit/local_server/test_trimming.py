"""The library that calls malloc_trim, in a small program that is named as the server is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tritonchaos.local_server.trimming import Trimmer
from tritonchaos.native import find_compiler, missing_compiler

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=f"{missing_compiler()}")

# Says what its child and it see of our variables, then what it holds once it was asked twice.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long resident(void)
{
    long pages = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*ld %ld %ld", &pages, &shared) != 2) exit(3);
    fclose(file);
    return (pages - shared) * sysconf(_SC_PAGESIZE);
}
int main(void)
{
    enum { COUNT = 400, BYTES = 60 * 1024 };
    static char *kept[COUNT];
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("own %s %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "-", getenv("TRITONCHAOS_TRIM") ? "set" : "-");
    if (system("echo child ${LD_PRELOAD:--}")) return 2;
    for (int i = 0; i < COUNT; i++) kept[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; i < COUNT - 1; i++) free(kept[i]);
    printf("held %ld\n", resident());
    while (getchar() == '?') printf("held %ld\n", resident());
    return 0;
}
"""


@contextmanager
def program(folder: Path, environment: dict[str, str], name: str = "tritonserver") -> Iterator[subprocess.Popen[str]]:
    (folder / "program.c").write_text(PROGRAM)
    compiled = [*find_compiler().command, "-o", str(folder / name), str(folder / "program.c")]
    subprocess.run(compiled, check=True, capture_output=True)
    process = subprocess.Popen(
        [str(folder / name)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        process.communicate(timeout=60)


def said(process: subprocess.Popen[str], ask: bool = False) -> list[str]:
    assert process.stdin is not None and process.stdout is not None
    if ask:
        process.stdin.write("?")
        process.stdin.flush()
    return process.stdout.readline().split()


def test_a_running_program_gives_back_what_its_allocator_keeps(tmp_path: Path) -> None:
    trimmer = Trimmer(tmp_path / "trim")
    with program(tmp_path, trimmer.environment(dict(os.environ))) as process:
        own, child = said(process), said(process)
        held = int(said(process)[1])
        assert trimmer.trim(20.0) == ""
        assert trimmer.trim(20.0) == ""
        left = int(said(process, ask=True)[1])
    assert (own[1:], child[1:]) == (["-", "-"], ["-"]), "neither it nor what it starts sees our variables"
    assert held - left > 20 * 1024**2
    assert process.returncode == 0


def test_a_library_of_the_users_own_stays_in_the_environment(tmp_path: Path) -> None:
    trimmer = Trimmer(tmp_path / "trim")
    environment = trimmer.environment({**os.environ, "LD_PRELOAD": "libc.so.6"})
    with program(tmp_path, environment) as process:
        assert said(process)[1] == "libc.so.6"
        assert trimmer.trim(20.0) == ""


def test_a_program_in_front_of_the_server_does_not_take_the_library(tmp_path: Path) -> None:
    trimmer = Trimmer(tmp_path / "trim")
    with program(tmp_path, trimmer.environment(dict(os.environ)), name="wrapper") as process:
        own = said(process)
        assert "tritonchaos_trimmer" in own[1] and own[2] == "set"
        assert "did not take the library" in trimmer.trim(20.0)


def test_a_program_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    trimmer = Trimmer(tmp_path / "trim")
    with program(tmp_path, trimmer.environment(dict(os.environ))):
        pass
    assert "did not take the library" in trimmer.trim(20.0)


def test_without_a_compiler_the_environment_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    trimmer = Trimmer(tmp_path / "trim")
    assert trimmer.environment({"A": "b"}) == {"A": "b"}
    assert "no-such-compiler" in trimmer.trim(1.0)
