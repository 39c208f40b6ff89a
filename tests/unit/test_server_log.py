"""A log is read in pieces, and what is found in it is what is found in the whole."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.observations.server_log import blocks, line_starts, lines_from, places_of
from tritonchaos.store.log_file import open_log
from tritonchaos.units import KIB, MIB


@given(st.lists(st.sampled_from([b"ab", b"a", b"\n", b"xyz"])), st.sampled_from([b"a", b"ab", b"aab"]))
def test_each_occurrence_is_found_once(parts: list[bytes], wanted: bytes) -> None:
    log = b"".join(parts)
    assert list(places_of(log, wanted)) == [at for at in range(len(log)) if log.startswith(wanted, at)]


def test_an_occurrence_across_two_blocks_is_found() -> None:
    log = b"x" * (MIB - 3) + b"Signal (11)\nnext\n"
    assert list(places_of(log, b"Signal (")) == [MIB - 3]
    assert [len(block) for _, block in blocks(log)] == [MIB, len(log) - MIB]


def test_a_line_is_given_once_however_often_it_has_the_bytes() -> None:
    log = b"one\ntwo Signal ( Signal (\nthree Signal (\n"
    assert [lines_from(log, start, 2) for start in line_starts(log, b"Signal (")] == [
        ["two Signal ( Signal (", "three Signal ("],
        ["three Signal ("],
    ]


def test_a_line_without_end_is_cut() -> None:
    log = b"x" * MIB
    assert len(lines_from(log, 0, 1)[0]) == 64 * KIB


def test_a_file_is_read_in_pieces_and_the_same_as_bytes(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"0123456789")
    log = open_log(path)
    assert len(log) == 10
    assert (log[:], log[2:4], log[-3:], log[8:99], log[5:2]) == (b"0123456789", b"23", b"789", b"89", b"")
    path.write_bytes(b"0123456789 and more")  # what is written later does not belong to it
    assert log[:] == b"0123456789"


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert open_log(tmp_path / "server.log") == b""
