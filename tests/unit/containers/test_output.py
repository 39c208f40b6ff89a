"""The engine's stream of a container's output, cut into parts as a network may."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.containers.output import Frames, copy_output


def framed(said: list[bytes]) -> bytes:
    return b"".join(bytes([1 + n % 2, 0, 0, 0]) + len(text).to_bytes(4, "big") + text for n, text in enumerate(said))


@given(st.lists(st.binary(max_size=300)), st.lists(st.integers(1, 50), min_size=1))
def test_what_was_said_comes_out_however_the_stream_is_cut(said: list[bytes], sizes: list[int]) -> None:
    frames, stream, got, number = Frames(), framed(said), b"", 0
    while stream:
        size = sizes[number % len(sizes)]
        got += frames.take(stream[:size])
        stream, number = stream[size:], number + 1
    assert got == b"".join(said)


def test_a_long_frame_is_not_waited_for() -> None:
    frames = Frames()
    assert frames.take(framed([b"x" * 1000])[:20]) == b"x" * 12


def test_the_output_is_copied_to_its_end() -> None:
    log = io.BytesIO()
    copy_output(io.BytesIO(framed([b"one\n", b"", b"two\n" * 40_000])), log)
    assert log.getvalue() == b"one\n" + b"two\n" * 40_000
