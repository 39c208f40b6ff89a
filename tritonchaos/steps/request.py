"""Send any HTTP request to the server, well-formed or not."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, Field

from tritonchaos.observations import Answer, JsonValue, Reply
from tritonchaos.plugins import STEPS, Contract, Workbench

_TOKEN: Final = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
_BASE64: Final = "base64"
# A reply's body is kept whole up to here: what a request asks for may be a tensor of gigabytes.
_KEPT_BYTES: Final = 1 << 20


def _one_line(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError(f"found {text[:80]!r}, expected text without control characters")
    return text


def _path(path: str) -> str:
    if not path.startswith("/") or " " in path:
        raise ValueError(f"found {path[:80]!r}, expected a path such as /v2/health/live, spaces written as %20")
    return _one_line(path)


def _body(body: JsonValue) -> JsonValue:
    if isinstance(body, Mapping) and set(body) == {_BASE64}:
        try:
            base64.b64decode(body[_BASE64], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise ValueError("found base64 that cannot be decoded, expected base64: TEXT") from None
    return body


@STEPS.register
@dataclass(frozen=True, slots=True)
class Request:
    """Send an HTTP request as it is written and keep the answer.

    Attributes:
        path: Path and query, such as /v2/models/ident/stats.
        method: HTTP method.
        headers: Name -> value.
        body: Text that is sent as it is, {base64: TEXT} for bytes, or anything else, which is sent as JSON.
    """

    name: ClassVar[str] = "request"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    path: Annotated[str, AfterValidator(_path)]
    method: Annotated[str, Field(pattern=_TOKEN)] = "GET"
    headers: Mapping[Annotated[str, Field(pattern=_TOKEN)], Annotated[str, AfterValidator(_one_line)]] = field(
        default_factory=dict
    )
    body: Annotated[Any, AfterValidator(_body)] = None

    def apply(self, bench: Workbench) -> Reply:
        """Send it and wait for the answer."""
        reply = bench.client.request(self.method, self.path, bench.deadline_s, self._headers(), self._bytes())
        if isinstance(reply, Answer) and len(reply.body) > _KEPT_BYTES:
            bench.observe(body_bytes=len(reply.body))
            return Answer(reply.status, reply.body[:_KEPT_BYTES], reply.elapsed_ns)
        return reply

    def _headers(self) -> Mapping[str, str]:
        is_json = self.body is not None and not isinstance(self.body, str) and not self._is_base64()
        has_type = any(name.lower() == "content-type" for name in self.headers)
        return {"Content-Type": "application/json", **self.headers} if is_json and not has_type else self.headers

    def _is_base64(self) -> bool:
        return isinstance(self.body, Mapping) and set(self.body) == {_BASE64}

    def _bytes(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, str):
            return self.body.encode()
        return base64.b64decode(self.body[_BASE64]) if self._is_base64() else json.dumps(self.body).encode()
