"""`judge --series` as a user calls it: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonchaos.units import MIB

FLAT, CLIMB = [64 * MIB] * 100, [64 * MIB + 2 * MIB * cycle for cycle in range(100)]


def judge(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tritonchaos", "judge", *arguments]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, timeout=240)


def write(folder: Path, **series: list[int]) -> str:
    lines = [json.dumps({"id": name, "values": values, "channel": "device"}) for name, values in series.items()]
    (folder / "series.jsonl").write_text("\n".join(lines) + "\n")
    return "series.jsonl"


@pytest.mark.parametrize(
    ("series", "exit_code"),
    [
        ({"a": FLAT}, 0),
        ({"a": FLAT, "b": CLIMB[:5]}, 3),
        ({"a": FLAT, "b": CLIMB[:5], "c": CLIMB}, 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_series(
    tmp_path: Path, series: dict[str, list[int]], exit_code: int
) -> None:
    done = judge(tmp_path, "--series", write(tmp_path, **series), "--json")
    assert done.returncode == exit_code, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(series)


def test_people_get_a_table_with_curves(tmp_path: Path) -> None:
    done = judge(tmp_path, "--series", write(tmp_path, flat=FLAT, climb=CLIMB))
    assert "climb  LEAK" in done.stdout
    assert "▁" in done.stdout
    assert "2 series: 1 LEAK, 1 STABLE" in done.stdout


def test_standard_input_is_read(tmp_path: Path) -> None:
    text = "rss\n" + "".join(f"{value}\n" for value in CLIMB)
    done = judge(tmp_path, "--series", "-", "--json", stdin=text)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["id"] == "standard input"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--series", "nowhere.csv"], "cannot read the series nowhere.csv"),
        (["--series", "."], "cannot read the series"),
        (["--series", "empty.csv"], "empty.csv is empty"),
        (["--series", "two.csv"], "name one with --column"),
        (["--series", "two.csv", "--column", "b", "--channel", "disk"], "expected device, host or count"),
        (["--series", "two.csv", "--column", "b", "--quantum", "big"], "--quantum: found 'big'"),
        (["--series", "two.csv", "--column", "b", "--quantum", "0"], "--quantum: found 0"),
        (["run", "--series", "two.csv"], "expected one of them"),
        (["run", "--budget", "3"], "are for --series"),
        ([], "expected a run directory"),
    ],
)
def test_wrong_usage_exits_2_with_what_was_expected(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    done = judge(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_a_flawed_series_exits_3_and_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("bytes\n1\n2\nhello\n4\n")
    done = judge(tmp_path, "--series", "log.csv", "--json")
    assert done.returncode == 3, done.stderr
    assert "line 4: found 'hello'" in json.loads(done.stdout)["reason"]


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"bytes\n1\n\xff\xfe\x00\n")
    done = judge(tmp_path, "--series", "log.csv", "--json")
    assert done.returncode == 3, done.stderr
    assert "line 3" in json.loads(done.stdout)["reason"]


@pytest.mark.long
def test_ten_million_values_take_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "big.csv").open("w") as file:
        file.write("gpu\n")
        for number in range(10_000_000):
            file.write(f"{1_000_000_000 + number % 7 * 100_000_000}\n")
    command = [sys.executable, "-m", "tritonchaos", "judge", "--series", "big.csv", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 3}
    assert used.ru_maxrss < 200_000  # KiB
