"""Progress where there is no terminal: plain lines, a heartbeat also while nothing happens, no harm when it fails."""

from __future__ import annotations

import threading
from io import StringIO

import pytest

from tritonchaos.cli.progress import Progress
from tritonchaos.observations import Note


class Heard(StringIO):
    """Standard error that says when a text has been written."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._wanted = wanted
        self.heard = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._wanted in self.getvalue():
            self.heard.set()
        return written


class Gone(StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_heartbeat_comes_while_nothing_happens() -> None:
    stream = Heard("preparing")
    with Progress(stream, heartbeat_s=0.0):
        assert stream.heard.wait(10)


def test_lines_are_written_in_order_before_the_block_ends() -> None:
    stream = StringIO()
    with Progress(stream) as progress:
        progress.line("one")
        progress.line("two")
    assert stream.getvalue() == "one\ntwo\n"


def test_a_stream_that_has_gone_does_not_end_the_run() -> None:
    said = []
    with Progress(Gone()) as progress:
        progress.line("one")
        progress.see(Note(1, "nobody reads this"))
        said.append("the run goes on")
    assert said == ["the run goes on"]
    with pytest.raises(OSError):
        Gone().write("a stream like this one does raise")


def test_no_thread_is_left() -> None:
    with Progress(StringIO()):
        pass
    assert "progress" not in {thread.name for thread in threading.enumerate()}
