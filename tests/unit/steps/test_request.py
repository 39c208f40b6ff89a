"""How a raw request is put together."""

from __future__ import annotations

from typing import Any

import pytest

from tritonchaos.observations import Answer
from tritonchaos.plugins import Workbench
from tritonchaos.steps.request import Request


class Recorder:
    def __init__(self, body: bytes = b"") -> None:
        self.sent: tuple[Any, ...] = ()
        self._body = body

    def request(self, method: str, path: str, deadline_s: float, headers: Any, body: bytes) -> Answer:
        self.sent = (method, path, dict(headers), body)
        return Answer(200, self._body, 1)


def bench(client: Recorder) -> Workbench:
    return Workbench(client, None, {}, None, None, lambda seconds: None)  # type: ignore[arg-type]


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("step", "sent"),
    [
        (Request("/v2"), ("GET", "/v2", {}, b"")),
        (Request("/v2", "POST", body="ä{"), ("POST", "/v2", {}, "ä{".encode())),
        (Request("/v2", "POST", body={"a": [1]}), ("POST", "/v2", JSON, b'{"a": [1]}')),
        (Request("/v2", "POST", body=[]), ("POST", "/v2", JSON, b"[]")),
        (Request("/v2", body={"base64": "AP8="}), ("GET", "/v2", {}, b"\x00\xff")),
        (Request("/v2", headers={"content-TYPE": "x"}, body={}), ("GET", "/v2", {"content-TYPE": "x"}, b"{}")),
    ],
)
def test_what_is_sent(step: Request, sent: tuple[Any, ...]):
    client = Recorder()
    step.apply(bench(client))
    assert client.sent == sent


def test_a_huge_answer_is_kept_in_part():
    table = bench(Recorder(b"x" * (3 << 20)))
    reply = Request("/v2").apply(table)
    assert isinstance(reply, Answer) and len(reply.body) == 1 << 20
    assert table.observed == {"body_bytes": 3 << 20}
