"""Sweeps of the inference step, against a client that answers from memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import Answer, NoAnswer, Reply
from tritonchaos.plugins import Workbench
from tritonchaos.steps.infer import Infer, first_mismatch
from tritonchaos.templates import ServedModel, Tensor
from tritonchaos.templates.formula import parse_formula

MODEL = ServedModel(
    "m", "t", "v", False, {}, {}, (Tensor("IN", "FP32", (-1,)),), (Tensor("OUT", "FP32", (-1,)),),
    {"OUT": parse_formula("IN", ["IN"])}, 4,
)  # fmt: skip


class Echo:
    """Answers with what it is sent; refuses batches above the model's."""

    url = "http://127.0.0.1:9"
    grpc = None

    def __init__(self, wrong_from: int = 99, silent: bool = False) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self._wrong_from = wrong_from
        self._silent = silent

    def infer(
        self, model: str, inputs: Mapping[str, Any], outputs: object, deadline_s: float, version: str, types: object
    ) -> tuple[Reply, dict[str, Any] | None]:
        values = inputs["IN"]
        self.shapes.append(values.shape)
        if self._silent:
            return NoAnswer("deadline", 5), None
        if values.shape[0] > 4:
            return Answer(400, b'{"error": "batch-size must be <= 4"}', 7), None
        answered = values + 1 if len(self.shapes) > self._wrong_from else values
        return Answer(200, json.dumps({"model_version": version or "1"}).encode() + b"\xff", 7), {"OUT": answered}


def bench(client: Echo) -> Workbench:
    return Workbench(client, None, {"m": MODEL}, None, None, lambda seconds: None)  # type: ignore[arg-type]


def test_every_combination_is_sent_in_order():
    client = Echo()
    Infer("m", batch=(1, 4), shapes=((2,), (3,)), count=2).apply(bench(client))
    assert client.shapes == [(1, 2)] * 2 + [(1, 3)] * 2 + [(4, 2)] * 2 + [(4, 3)] * 2


def test_the_first_refusal_ends_the_sweep_and_says_where():
    client = Echo()
    table = bench(client)
    reply = Infer("m", batch=(1, 5, 2)).apply(table)
    assert isinstance(reply, Answer) and reply.status == 400 and b"batch-size" in reply.body
    assert [shape[0] for shape in client.shapes] == [1, 5]
    assert table.observed == {"at": "batch 5, 1 clients"}


def test_the_first_wrong_answer_ends_it_too():
    client = Echo(wrong_from=2)
    table = bench(client)
    Infer("m", count=9).apply(table)
    assert len(client.shapes) == 3
    assert table.observed["match"] is False and "OUT" in str(table.observed["first_mismatch"])


def test_over_grpc_the_other_side_of_the_client_is_asked():
    class Both(Echo):
        def __init__(self) -> None:
            super().__init__()
            self.others = {"grpc": Echo()}

        def over(self, via: str) -> Echo:
            return self.others[via]

    client = Both()
    table = bench(client)
    table.via = "grpc"
    Infer("m", count=2).apply(table)
    assert (len(client.shapes), len(client.others["grpc"].shapes)) == (0, 2)
    assert table.observed["match"] is True


def test_silence_is_no_answer_and_no_outputs():
    table = bench(Echo(silent=True))
    assert Infer("m").apply(table) == NoAnswer("deadline", 5)
    assert "match" not in table.observed


def test_who_answered_is_recorded_and_the_body_is_not_kept():
    table = bench(Echo())
    reply = Infer("m", version="3").apply(table)
    assert reply == Answer(200, b"", 7)
    assert (table.observed["answered_by"], table.observed["match"]) == (["3"], True)


def test_a_model_that_is_not_known_cannot_be_asked():
    with pytest.raises(ScenarioError, match="--model-repository"):
        Infer("other").apply(bench(Echo()))


def test_nan_equals_nan_and_nothing_else():
    nan, one = np.array([np.nan, 1], np.float32), np.array([1, 1], np.float32)
    assert first_mismatch({"A": nan}, {"A": nan.copy()}) is None
    assert "(1 of 2 differ)" in str(first_mismatch({"A": one}, {"A": nan}))
    assert "(1 of 2 differ)" in str(first_mismatch({"A": nan}, {"A": one}))
    texts = np.array([b"a", b"b"], object)
    assert first_mismatch({"A": texts}, {"A": texts.copy()}) is None
