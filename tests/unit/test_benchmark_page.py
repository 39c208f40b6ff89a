"""The page of the benchmarks: what was not measured this time stays as it is."""

from __future__ import annotations

from tests.benchmarks.table import Row, page, section

TITLES = ["A cycle", "Start", "Docker"]


def test_a_part_that_is_measured_alone_leaves_the_others_as_they_are() -> None:
    first = {title: section(title, [Row("one", "1 ms", "< 2 ms", True)], "Triton 1", 0.5) for title in TITLES[:2]}
    whole = page(TITLES, first, "", ["a remark"])
    docker = section("Docker", [Row("two", "3 ms", "< 2 ms", False)], "Triton 2", 0.1)
    later = page(TITLES, {"Docker": docker}, whole, ["a remark"])
    assert all(first[title] in later for title in TITLES[:2])
    assert "| two | 3 ms | < 2 ms | **no** |" in later
    again = page(TITLES, {"Docker": section("Docker", [Row("three", "1 ms")], "Triton 3", 0.1)}, later, ["a remark"])
    assert "| two |" not in again
    assert again.count("a remark") == 1
    assert [line for line in again.splitlines() if line.startswith("## ")] == [
        *(f"## {title}" for title in TITLES),
        "## How it is measured",
    ]
