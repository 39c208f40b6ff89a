"""Stacks of threads: taken of a process that runs, refused with a reason otherwise."""

from __future__ import annotations

import subprocess

import pytest

from tritonchaos.errors import TargetError
from tritonchaos.local_server.stacks import find_debugger, take_stacks

needs_debugger = pytest.mark.skipif(find_debugger() is None, reason="needs gdb or eu-stack")


def test_without_a_debugger_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetError, match="neither gdb nor eu-stack") as caught:
        take_stacks([1])
    assert "apt-get install gdb" in caught.value.hint


@needs_debugger
def test_the_threads_of_a_process_are_printed_and_it_goes_on_afterwards() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 0.2; read line; echo $line"], stdin=-1, stdout=-1) as process:
        try:
            [text] = take_stacks([process.pid]).values()
            assert "#0" in text or "not permitted" in text
            assert process.communicate(b"alive\n", timeout=20)[0] == b"alive\n"
        finally:
            process.kill()


@needs_debugger
def test_a_process_that_is_gone_gives_a_reason() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert take_stacks([process.pid])[process.pid].startswith("not taken: ")
