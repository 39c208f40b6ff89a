"""repro.sh: the same calls with curl, for a finding that shows in the answers alone."""

from __future__ import annotations

import base64
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_ENOUGH: Final = frozenset({"unmet", "inconsistent", "no_answer", "will_not_stop"})
_WRITTEN: Final = frozenset({"use", "load", "unload", "infer", "request", "wait", "wait_for", "settle"})
# What a JSON number can be; the others need the binary form.
_IN_JSON: Final = frozenset(
    {"BOOL", "BYTES", "FP32", "FP64", *(f"{u}INT{n}" for u in ("", "U") for n in (8, 16, 32, 64))}
)
_LONGEST_BODY: Final = 4096
_TRIES_AT_MOST: Final = 20

_HEAD: Final = """#!/bin/sh
# The calls of repro.py with curl, to be read beside ISSUE.md; it prints the answers and judges nothing.
# Start a tritonserver first:
#   mkdir repository; tritonserver --model-repository=repository {flags}
#   REPOSITORY=repository URL=http://127.0.0.1:8000 sh repro.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
REPOSITORY=${{REPOSITORY:?the folder that tritonserver was started with}}
URL=${{URL:-http://127.0.0.1:8000}}

use() {{ # STATE MODEL: bring the files of a model into a state
    rm -rf "$REPOSITORY/$2.aside"
    cp -R "$here/models/$1/$2" "$REPOSITORY/$2.aside"
    rm -rf "${{REPOSITORY:?}}/$2"
    mv "$REPOSITORY/$2.aside" "$REPOSITORY/$2"
    echo "files of $2: $1"
}}
ask() {{ # METHOD PATH SECONDS [more for curl]
    method=$1; path=$2; seconds=$3; shift 3
    echo "$method $path"
    curl -gsS -m "$seconds" -X "$method" "$URL$path" "$@" -w ' HTTP %{{http_code}} after %{{time_total}} s\\n'
}}
gone() {{ # MODEL SECONDS: an unload answers before the model is gone
    end=$(($(date +%s) + $2))
    while curl -sS -m 5 -X POST "$URL/v2/repository/index" | tr '}}' '\\n' | grep "\\"name\\":\\"$1\\"" |
        grep -Eq '"state":"(READY|LOADING|UNLOADING)"'; do
        [ "$(date +%s)" -lt "$end" ] || {{ echo "$1 is still there"; return; }}
        sleep 0.05
    done
}}
"""


def shell_script(recipe: Mapping[str, Any]) -> str | None:
    """Write repro.sh, or None where the finding needs more than requests."""
    steps = [step for block in recipe["blocks"] for step in block["each"]]
    is_plain = all(_can_be_written(step) for step in steps)
    needs_more = recipe["planted"] or recipe["build"] or recipe["missing"] or recipe["sends_files"] or recipe["beside"]
    if recipe["claim"]["by"] not in _ENOUGH or not is_plain or needs_more:
        return None
    flags = [f"--model-control-mode={recipe['server']['mode']}"]
    flags += [f"--{name}={value}" for name, value in recipe["server"]["flags"].items()]
    head = _HEAD.format(flags=shlex.join(flags))
    lines = [head, *_start(recipe["models"]), *_blocks(recipe["blocks"])]
    if recipe["claim"]["by"] == "will_not_stop":
        lines.append(
            'echo "now stop tritonserver with kill -TERM: it must end by itself, long before its exit timeout"'
        )
    return "\n".join(lines) + "\n"


def _can_be_written(step: Mapping[str, Any]) -> bool:
    if step["do"] == "infer":
        body = _inference(step)
        return body is not None and len(body) <= _LONGEST_BODY
    if step["do"] == "request":
        return len(step["body"]) <= _LONGEST_BODY and _text_of(step["body"]) is not None
    return step["do"] in _WRITTEN and "config" not in step and "files" not in step


def _inference(step: Mapping[str, Any]) -> str | None:
    """The body of an inference in JSON, every input all 1; None where JSON cannot hold it."""
    inputs = []
    for tensor in step["inputs"]:
        count = math.prod(tensor["shape"])
        if tensor["datatype"] not in _IN_JSON or count > _LONGEST_BODY:
            return None
        one = {"BOOL": True, "BYTES": "1"}.get(tensor["datatype"], 1)
        inputs.append({**tensor, "data": [one] * count})
    return json.dumps({"inputs": inputs}, separators=(",", ":"))


def _text_of(body: str) -> str | None:
    try:
        text = base64.b64decode(body).decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _start(models: Mapping[str, str]) -> Iterator[str]:
    for model, state in models.items():
        yield f"use {shlex.quote(state)} {shlex.quote(model)}"


def _blocks(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        lines = [line for step in block["each"] for line in _step(step)]
        times = min(block["cycles"], _TRIES_AT_MOST)
        yield f"echo {shlex.quote('--- ' + block['phase'])}"
        if times > 1:
            yield f"for cycle in $(seq {times}); do"
            yield from (f"    {line}" for line in lines)
            yield "done"
        else:
            yield from lines


def _step(step: Mapping[str, Any]) -> Iterator[str]:
    model = shlex.quote(str(step.get("model", "")))
    if step["do"] == "use":
        yield f"use {shlex.quote(step['state'])} {model}"
    elif step["do"] in ("load", "unload"):
        path = shlex.quote(f"/v2/repository/models/{step['model']}/{step['do']}")
        error = step["expect"].get("error")
        yield f"# expected: {_one_line(error) if error else 'HTTP 200'}"
        yield f"ask POST {path} {step['deadline_s']:g}"
        yield from [f"gone {model} {step['deadline_s']:.0f}"] if step["do"] == "unload" else []
        yield f"ask POST /v2/repository/index 5; ask GET {shlex.quote('/v2/models/' + step['model'] + '/ready')} 5"
    elif step["do"] == "infer":
        version = f"/versions/{step['version']}" if step.get("version") else ""
        path, body = f"/v2/models/{step['model']}{version}/infer", _inference(step) or ""
        count = min(step.get("count", 1), _TRIES_AT_MOST)
        again = f"for n in $(seq {count}); do " if count > 1 else ""
        end = "; done" if count > 1 else ""
        yield f"{again}ask POST {shlex.quote(path)} {step['deadline_s']:g} --data-raw {shlex.quote(body)}{end}"
    elif step["do"] == "request":
        headers = "".join(f" -H {shlex.quote(f'{name}: {value}')}" for name, value in step["headers"].items())
        text = _text_of(step["body"])
        body = f" --data-raw {shlex.quote(text)}" if text else ""
        yield f"ask {shlex.quote(step['method'])} {shlex.quote(step['path'])} {step['deadline_s']:g}{headers}{body}"
    elif step["do"] == "wait":
        yield f"sleep {step['seconds']:g}"
    elif step["do"] == "wait_for":
        yield "sleep 1"


def _one_line(text: object) -> str:
    return "an error with " + " ".join(str(text).split())
