"""Calls to the server, each on a connection of its own: an open one would keep the server from stopping."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

HELD_STATES = ("READY", "LOADING", "UNLOADING")


def call(
    port: int, method: str, path: str, deadline_s: float, body: bytes = b"", headers: Any = None
) -> dict[str, Any]:
    """Return {"status", "body", "headers", "took_s", "why"}; status None: no answer, and `why` says why not."""
    began = time.monotonic()
    answer: dict[str, Any] = {"status": None, "body": b"", "headers": {}, "why": ""}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=deadline_s)
    try:
        connection.request(method, path, body=body or None, headers=dict(headers or {}))
        response = connection.getresponse()
        answer["body"] = response.read()
        answer["status"] = response.status
        answer["headers"] = {name.lower(): value for name, value in response.getheaders()}
    except OSError as error:
        # Of the many names only the time-out matters: everything else is a connection that broke.
        answer["why"] = "deadline" if "timed out" in str(error) else "connection: {}".format(error)
    except http.client.HTTPException as error:
        answer["why"] = "no HTTP answer: {!r}".format(error)
    finally:
        connection.close()
    answer["took_s"] = time.monotonic() - began
    return answer


def post(port: int, path: str, deadline_s: float, value: Any = None) -> dict[str, Any]:
    """POST a JSON value."""
    return call(port, "POST", path, deadline_s, json.dumps({} if value is None else value).encode())


def error_text(answer: dict[str, Any]) -> str:
    """Text of a refusal: the field `error` of its JSON, else the body itself."""
    text: str = answer["body"].decode("utf-8", "replace")
    try:
        told = json.loads(text)
        return str(told["error"]) if isinstance(told, dict) and "error" in told else text
    except ValueError:
        return text


def read_index(port: int, deadline_s: float = 5.0) -> list[dict[str, str]] | None:
    """Ask for the repository index; None if it does not answer well."""
    answer = call(port, "POST", "/v2/repository/index", deadline_s, b"{}")
    if answer["status"] != 200:
        return None
    try:
        return [{key: str(value) for key, value in entry.items()} for entry in json.loads(answer["body"])]
    except (ValueError, AttributeError, TypeError):
        return None


def states_of(index: list[dict[str, str]] | None, model: str) -> list[str]:
    """States of a model's versions in the index; an entry without a state counts as none."""
    return [entry["state"] for entry in index or [] if entry.get("name") == model and entry.get("state")]


def wait_until_gone(port: int, model: str, deadline_s: float) -> tuple[str, float | None]:
    """Wait until the index shows a model in none of READY, LOADING, UNLOADING.

    The answer to an unload comes before that.

    Returns:
        The last state, and the seconds that it took; None if the deadline passed.
    """
    began = time.monotonic()
    pause_s, state = 0.0005, ""
    while True:
        index = read_index(port)
        held = [found for found in states_of(index, model) if found in HELD_STATES]
        if index is not None and not held:
            return "", time.monotonic() - began
        state = held[0] if held else "an index that does not answer"
        if time.monotonic() - began > deadline_s:
            return state, None
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.01)


def probe(port: int, model: str) -> dict[str, Any]:
    """What the server says of a model: in the index, by model ready, and by its metadata."""
    index = read_index(port)
    return {
        "index": None if index is None else "READY" in states_of(index, model),
        "states": states_of(index, model),
        "ready": call(port, "GET", "/v2/models/{}/ready".format(model), 5.0)["status"],
        "metadata": call(port, "GET", "/v2/models/{}".format(model), 5.0)["status"],
    }
