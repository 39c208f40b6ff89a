from __future__ import annotations

from typing import Any

import pytest

from tritonchaos.errors import ScenarioError, UsageError
from tritonchaos.plugins import load_plugins
from tritonchaos.scenario import parse_checks

load_plugins()
OF_RUN = (("hang", {"deadline": 3}), ("server_alive", {}))


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("hang", (("hang", {"deadline": 3}),)),
        (" hang , memory_growth,", (("hang", {"deadline": 3}), ("memory_growth", {}))),
        ("[hang]", (("hang", {"deadline": 3}),)),
        ("[{hang: {}}]", (("hang", {}),)),
        ("[{returns_to_baseline: 10MiB}, {hang: }]", (("returns_to_baseline", {"limit": "10MiB"}), ("hang", {}))),
        ("[{returns_to_baseline: {share: 0.5}}]", (("returns_to_baseline", {"share": 0.5}),)),
    ],
)
def test_names_keep_the_fields_of_the_run_and_yaml_sets_others(text: str, checks: Any) -> None:
    assert parse_checks(text, OF_RUN) == checks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no check"),
        (" , ", "found no check"),
        ("[]", "found no check"),
        ("hng", "did you mean 'hang'"),
        ("[{hng: 3}]", "found the unknown checker 'hng'"),
        ("[3]", "found 3, expected NAME"),
        ("[{hang: 1, latency: 2}]", "expected NAME or"),
        ("[{server_alive: 3}]", "expected nothing: it has no fields"),
    ],
)
def test_what_is_no_list_of_checks_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        parse_checks(text, OF_RUN)


@pytest.mark.parametrize("text", ["[hang: 3}", "[hang, hang", "[{hang: 1, hang: 2}]"])
def test_what_is_no_yaml_is_told_with_its_place(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"--checks:1:\d+"):
        parse_checks(text, OF_RUN)
