"""What a command says while it takes long."""

import io
import time

from tritonchaos.cli.waiting import Waiting


def test_a_command_that_is_quick_says_nothing() -> None:
    stream = io.StringIO()
    with Waiting(stream, first_s=600) as waiting:
        waiting.now("writing series")
    assert stream.getvalue() == ""


def test_one_that_takes_long_says_what_it_is_doing() -> None:
    stream = io.StringIO()
    with Waiting(stream, first_s=0, every_s=0.01) as waiting:
        waiting.now("writing events: 20,000 of 350,004")
        until_s = time.monotonic() + 60
        while "writing events: 20,000 of 350,004\n" not in stream.getvalue() and time.monotonic() < until_s:
            time.sleep(0.01)
    assert "s] writing events: 20,000 of 350,004\n" in stream.getvalue()
