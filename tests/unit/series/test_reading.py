"""Reading recorded series: the formats, and everything that can be wrong with a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonchaos.errors import UsageError
from tritonchaos.post_unload import Channel
from tritonchaos.series import Expected, Series, SeriesFlaw, read_series
from tritonchaos.units import MIB


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def only(source: str | Iterable[str], **expected: object) -> Series:
    given_lines = lines(source) if isinstance(source, str) else source
    [series] = read_series(given_lines, "file", Expected(**expected))  # type: ignore[arg-type]
    return series


def values_of(source: str, **expected: object) -> list[int]:
    found: list[list[int]] = [
        list(series.values)
        for series in read_series(lines(source), "file", Expected(**expected))  # type: ignore[arg-type]
    ]
    [values] = found
    return values


def flaw(source: str, **expected: object) -> str:
    with pytest.raises(SeriesFlaw) as raised:
        values_of(source, **expected)
    return str(raised.value)


def refusal(source: str, **expected: object) -> str:
    with pytest.raises(UsageError) as raised:
        values_of(source, **expected)
    return str(raised.value)


def json_line(**fields: object) -> str:
    return json.dumps({"id": "a", "values": [1, 2], **fields}) + "\n"


# --- JSON lines ----------------------------------------------------------------------------------


def test_a_json_line_is_read_with_all_that_it_says() -> None:
    text = json_line(arms="CT", quantum=512, channel="host", footprint=7, kind="l_const", note="x")
    [series] = read_series(lines(text), "file")
    assert list(series.values) == [1, 2]
    assert (series.id, series.arms, series.quantum, series.footprint) == ("a", "CT", 512, 7)
    assert series.channel is Channel.HOST


def test_each_line_is_a_series_and_one_without_id_has_its_line() -> None:
    text = json_line() + "\n" + '{"values": [3]}\n'
    assert [(series.id, list(series.values)) for series in read_series(lines(text), "file")] == [
        ("a", [1, 2]),
        ("line 3", [3]),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"values": [1, -2]}, "line 1, value 2: found -2, a negative number"),
        ({"values": [1, float("nan")]}, "line 1, value 2: found NaN"),
        ({"values": [1, float("inf")]}, "value 2: found inf"),
        ({"values": [1, "2"]}, "value 2: found '2', expected a number"),
        ({"values": [1, None]}, "value 2: found null"),
        ({"values": [True]}, "value 1: found true"),
        ({"values": [[1]]}, "value 1: found [1]"),
        ({"values": 5}, "values: found 5, expected a list"),
        ({"values": None}, "values: found null, expected a list"),
        ({"values": [2**63]}, "more than any memory has"),
        ({"arms": "T"}, "found 1 arms for 2 values"),
        ({"arms": "TTT"}, "found 3 arms for 2 values"),
        ({"arms": "TX"}, "arms: letter 2 is 'X', expected C (control) or T (treatment)"),
        ({"arms": ["T", "T"]}, "expected one letter per value"),
        ({"channel": "disk"}, "channel: found 'disk', expected device, host or count"),
        ({"quantum": 0}, "quantum: found 0"),
        ({"quantum": "2MiB"}, "quantum: found '2MiB'"),
        ({"footprint": -1}, "footprint: found -1"),
    ],
)
def test_what_is_wrong_with_a_json_line_is_said_with_its_place(fields: dict[str, object], said: str) -> None:
    assert said in flaw(json_line(**fields))


def test_a_broken_line_is_a_flawed_series_and_the_others_are_read() -> None:
    text = json_line() + '{"id": "b", "values": [1,\n' + json_line(id="c")
    series = read_series(lines(text), "file")
    assert list(next(series).values) == [1, 2]
    broken = next(series)
    assert broken.id == "line 2"
    with pytest.raises(SeriesFlaw, match=r"line 2.*expected a JSON object"):
        list(broken.values)
    assert list(next(series).values) == [1, 2]


@pytest.mark.parametrize("text", ["[1, 2, 3]\n", "{1}\n", '{"a": 1', "[" * 100_000])
def test_a_file_whose_first_line_is_no_object_is_refused(text: str) -> None:
    assert "expected a JSON object" in refusal(text)


def test_a_line_without_values_has_nothing_to_judge() -> None:
    assert "values: found null" in flaw('{"id": "a"}\n')


def long_line(values: list[object], **fields: object) -> str:
    """A line so long that it is read piece by piece."""
    return json.dumps({"id": "a", **fields, "note": "x" * 4_000_000, "values": values, "quantum": 2}) + "\n"


def test_a_long_line_is_read_as_a_short_one_is() -> None:
    values = [number * 1_000_003 for number in range(50_000)]
    [series] = read_series([long_line(list(values), arms="T" * len(values))], "file")
    assert series.quantum == 2
    assert list(series.values) == values


@pytest.mark.parametrize(
    ("values", "fields", "said"),
    [
        ([1] * 40_000 + [-1], {}, "value 40001: found -1"),
        ([1] * 40_000 + ["x"], {}, "value 40001: found 'x'"),
        ([1] * 40_000, {"arms": "T"}, "found 1 arms for 40000 values"),
        ([1] * 40_000, {"arms": "Q"}, "letter 1 is 'Q'"),
    ],
)
def test_what_is_wrong_with_a_long_line_is_said(values: list[object], fields: dict[str, object], said: str) -> None:
    assert said in flaw(long_line(values, **fields))


# --- CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("bytes\n4096\n8192\n", None),
        ("4096\n8192\n\n\n", None),
        ('"bytes"\n"4096"\n"8192"\n', None),
        ("time,rss,gpu\n1,4096,x\n2,8192,y\n", "rss"),
        ("time;rss\n1;4096\n2;8192\n", "rss"),
        ("1,4096\n2,8192\n", "2"),
        ('name,rss\n"a, b",4096\n"c",8192\n', "rss"),
        ("rss\n4 KiB\n8 KiB\n", None),
        ("rss\n4096.0\n8.192e3\n", "rss"),
        ("\n\nrss\r\n4096\r\n8192\r\n", None),
    ],
)
def test_a_column_of_a_csv_is_read(text: str, column: str | None) -> None:
    assert values_of(text, column=column) == [4096, 8192]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bytes\n1\n2\nhello\n4\n", "line 4: found 'hello', expected a number of bytes"),
        ("bytes\n1\n\n4\n", "line 3 is empty"),
        ("bytes\n1\n-2\n", "line 3: found -2"),
        ("bytes\n1\nnan\n", "line 3: found NaN"),
        ("bytes\n1\n1e999\n", "line 3: found inf"),
        ("bytes\n1 MiB\n2 GiB\n", "line 3: found '2 GiB', mixed units; the cells above have the unit MiB"),
        ("bytes\n1\n2 MiB\n", "line 3: found '2 MiB', mixed units; the cells above have the unit none"),
        ("bytes\n[N/A]\n", "line 2: found [N/A], no reading"),
        ("bytes\n3 parsec\n", "line 2: found '3 parsec'"),
        ("bytes\n" + "9" * 5000 + "\n", "line 2: found inf"),
    ],
)
def test_what_is_wrong_with_a_csv_is_said_with_its_line(text: str, said: str) -> None:
    assert said in flaw(text)


def test_a_row_of_another_width_is_a_flaw() -> None:
    assert "line 3: found 3 columns, expected 2" in flaw("a,b\n1,2\n1,2,3\n", column="b")


def test_several_columns_need_a_name_that_is_there() -> None:
    assert "3 columns (time, rss, gpu)" in refusal("time,rss,gpu\n1,2,3\n")
    assert "no column 'pss'; expected one of time, rss, gpu" in refusal("time,rss,gpu\n1,2,3\n", column="pss")
    assert "no column '4'" in refusal("1,2,3\n", column="4")


def test_a_column_is_not_asked_of_json() -> None:
    assert "have no columns" in refusal(json_line(), column="rss")


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_is_refused_with_what_was_expected(text: str) -> None:
    assert "file is empty" in refusal(text)
    assert "nvidia-smi" in refusal(text)


def test_a_file_of_endless_blank_lines_is_given_up() -> None:
    def blank() -> Iterator[str]:
        while True:
            yield "\n"

    with pytest.raises(UsageError, match="is empty"):
        next(read_series(blank(), "file"))


def test_values_are_taken_from_an_endless_log_as_they_are_asked_for() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "2097152\n"

    assert list(islice(only(endless()).values, 100_000)) == [2 * MIB] * 100_000


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_words(text: str) -> None:
    try:
        for series in read_series(lines(text), "file"):
            assert all(isinstance(value, int) and value >= 0 for value in series.values)
    except (SeriesFlaw, UsageError) as error:
        assert str(error)


# --- channel and quantum -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "channel"),
    [
        ("rss\n4096\n", Channel.HOST),
        ("gpu_bytes\n4097\n", Channel.DEVICE),
        ("x\n4194304\n2097152\n", Channel.DEVICE),
        ("x\n4194304\n4096\n", Channel.HOST),
        ("x\n12\n13\n", Channel.COUNT),
        ("x\n12000001\n", Channel.HOST),
    ],
)
def test_the_channel_that_a_file_does_not_name_is_seen_from_the_readings(text: str, channel: Channel) -> None:
    series = only(text)
    assert (series.channel, series.quantum) == (channel, None)
    assert len(list(series.values)) >= 1


def test_what_the_user_says_wins() -> None:
    series = only(json_line(channel="host", quantum=4096), channel=Channel.COUNT, quantum=3)
    assert (series.channel, series.quantum) == (Channel.COUNT, 3)


# --- nvidia-smi ----------------------------------------------------------------------------------

HEADER = "timestamp, memory.used [MiB]\n"
STAMPS = [f"2026/12/01 09:15:{second:02}.123" for second in range(60)]


@pytest.mark.parametrize(
    "text",
    [
        HEADER + f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, 12 MiB\n",
        HEADER + f"{STAMPS[0]}, 10\n{STAMPS[1]}, 12\n",
        f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, 12 MiB\n",
        f"{STAMPS[0]}, 10\n{STAMPS[1]}, 12\n",
        "timestamp, name, memory.used [MiB]\n" + f"{STAMPS[0]}, H200, 10 MiB\n{STAMPS[1]}, H200, 12 MiB\n",
    ],
)
def test_a_log_of_nvidia_smi_is_read_in_bytes(text: str) -> None:
    [series] = read_series(lines(text), "file")
    assert list(series.values) == [10 * MIB, 12 * MIB]
    assert (series.channel, series.quantum) == (Channel.DEVICE, None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (f"{STAMPS[1]}, 10 MiB\n{STAMPS[0]}, 12 MiB\n", "line 3: the time stamp jumps back"),
        (f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, [N/A]\n", "line 3: found [N/A]: the driver gave no reading"),
        (f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, [GPU is lost]\n", "line 3: found [GPU is lost]"),
        (f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, 12\n", "line 3: found '12', mixed units"),
        (f"{STAMPS[0]}, 10 MiB\n{STAMPS[1]}, 12 GiB\n", "mixed units"),
        (f"{STAMPS[0]}, 10 MiB\nyesterday, 12 MiB\n", "line 3: found 'yesterday', expected a time stamp"),
        (f"{STAMPS[0]}, 10 MiB\nUnable to determine the device handle\n", "line 3: found 'Unable to"),
        (f"{STAMPS[0]}, ten MiB\n", "line 2: found 'ten MiB'"),
    ],
)
def test_what_is_wrong_with_a_log_is_said_with_its_line(rows: str, said: str) -> None:
    assert said in flaw(HEADER + rows)


def test_a_log_of_several_gpus_is_refused_with_the_command_for_one() -> None:
    said = refusal(f"timestamp, index, memory.used [MiB]\n{STAMPS[0]}, 0, 10 MiB\n")
    assert "--id=0" in said


# --- what is no series ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["u\0s\0e\0d\0\n\0", "\x1f\ufffd\b\0\0\n"], ids=["UTF-16", "compressed"])
def test_what_is_no_text_is_refused(text: str) -> None:
    assert "is no UTF-8 text" in refusal(text)


def test_a_line_of_text_alone_is_shown_as_it_says_what_happened() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert said in flaw(f"{said}\n")
    assert "and no value below it" in flaw("used_bytes\n")


@pytest.mark.parametrize(
    ("name", "stamps"),
    [
        ("timestamp", ("2026-12-01 00:00:02", "2026-12-01 00:00:01")),
        ("time", ("2026/12/01T00:00:02.5Z", "2026/12/01T00:00:02.4Z")),
        ("time_s", ("17.5", "3")),
    ],
)
def test_a_time_stamp_beside_the_values_must_not_jump_back(name: str, stamps: tuple[str, str]) -> None:
    text = f"{name},used\n{stamps[0]},100\n{stamps[0]},100\n{stamps[1]},100\n"
    assert flaw(text, column="used") == f"line 4: the time stamp jumps back, {stamps[1]!r} after {stamps[0]!r}"


def test_times_that_cannot_be_read_and_the_column_itself_are_no_stamps() -> None:
    assert values_of("time,used\nlate,5\nearly,4\n", column="used") == [5, 4]
    assert values_of("time\n5\n4\n") == [5, 4]


def test_json_is_told_in_words_of_json() -> None:
    assert "found null" in flaw('{"id": "a", "values": [1, null]}\n')
    assert "found true" in flaw('{"id": "a", "values": [true]}\n')


def test_a_series_without_a_name_has_that_of_its_line() -> None:
    assert only(json_line(id=None)).id == "line 1"
