"""What is ours is known by its labels, and whether its maker still lives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tritonchaos.containers.labels import OWNER, ROLE, RUN, labels, owner_state


def test_what_this_process_makes_is_alive():
    made = labels("tc_1", "server")
    assert (made[RUN], made[ROLE], owner_state(made)) == ("tc_1", "server", "alive")


def test_what_a_process_made_that_has_ended_is_dead():
    ask = "from tritonchaos.containers.labels import *; print(labels('tc_1', 'x')[OWNER])"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    assert owner_state({OWNER: told}) == "dead"


@pytest.mark.parametrize(
    ("place", "value", "state"),
    [
        (0, "another-boot", "dead"),
        (1, "1", "unknown"),
        (2, "999999999", "dead"),
        (3, "1", "dead"),
        (4, "4242", "unknown"),
    ],
    ids=["boot", "namespace", "process", "start", "user"],
)
def test_each_part_of_the_owner_counts(place: int, value: str, state: str):
    parts = labels("tc_1", "server")[OWNER].split("/")
    parts[place] = value
    assert owner_state({OWNER: "/".join(parts)}) == state


@pytest.mark.parametrize("owner", ["", "x", "a/b/c/d/e", "a/b/1/2", "a/b/1/2/3/4"])
def test_labels_that_cannot_be_read_are_not_judged(owner: str):
    assert owner_state({OWNER: owner}) == "unknown"
