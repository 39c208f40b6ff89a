"""The pipe by which a server writes its own log, written here by programs as different as servers are."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

from tests.local_server import wait_for
from tritonchaos.containers.log_pipe import LogPipe


def say(pipe: LogPipe, text: str) -> None:
    subprocess.run(["sh", "-c", 'printf %s "$1" >> "$2"', "sh", text, str(pipe.path)], check=True, timeout=20)


def test_all_that_was_written_is_in_the_log_once_it_is_finished(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("before\n")
    pipe = LogPipe(tmp_path / "pipe", log)
    say(pipe, "of one server\n")
    say(pipe, "of the next, which opens it anew\n" * 3_000)
    pipe.finish()
    pipe.finish()
    assert log.read_text() == "before\nof one server\n" + "of the next, which opens it anew\n" * 3_000


def test_a_line_is_in_the_log_while_the_writer_lives(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    pipe = LogPipe(tmp_path / "pipe", log)
    writer = os.open(pipe.path, os.O_WRONLY)
    os.write(writer, b"loading\n")
    assert wait_for(lambda: log.read_bytes() == b"loading\n")
    os.close(writer)
    pipe.finish()


def test_others_that_append_to_the_log_are_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    pipe = LogPipe(tmp_path / "pipe", log)
    say(pipe, "a" * 100)
    assert wait_for(lambda: log.stat().st_size == 100)
    with log.open("ab") as beside:
        beside.write(b"printed\n")
    say(pipe, "b" * 100)
    pipe.finish()
    assert log.read_text() == "a" * 100 + "printed\n" + "b" * 100


def test_nothing_stays_but_the_pipe_itself_with_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    threads = threading.active_count()
    pipe = LogPipe(tmp_path / "pipe", tmp_path / "log", 0o622)
    pipe.finish()
    assert {path.name for path in Path("/proc/self/fd").iterdir()} == before
    assert threading.active_count() == threads
    assert stat.filemode(pipe.path.stat().st_mode) == "prw--w--w-"
