"""Completes steps with what repro.py cannot work out by itself: inputs, bodies, files that are sent along."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.errors import TritonChaosError, UsageError
from tritonchaos.repository.sending import CONFIG_FILE, config_json, sendable_files
from tritonchaos.reproducing.course import flat
from tritonchaos.reproducing.model_tensors import datatype_of
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.templates import find_template

_OPEN_DIM: Final = 4
_SWEEP_AT_MOST: Final = 32
VERSION: Final = "model_version"


def config_text(recorded: Recorded, state: str, model: str) -> str:
    """Text of a model's config.pbtxt in one state; "" without one."""
    file = recorded.model_folder(state, model) / CONFIG_FILE
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def sends_files(recorded: Recorded) -> bool:
    """Say whether models came with the load request alone, because the server did not read our repository."""
    name = recorded.finished.history.facts.target.get("target", "")
    entries = recorded.scenario.get("target") or []
    fields = [e[name] for e in entries if isinstance(e, Mapping) and isinstance(e.get(name), Mapping)]
    if name == "remote":
        return bool(fields) and not any(field.get("repository") for field in fields)
    return any(field.get("sends_files") for field in fields)


def finished_block(recorded: Recorded, block: Mapping[str, Any], needed: set[str]) -> dict[str, Any]:
    """Complete the steps of a block; those of models that are not needed are left out."""
    return {**block, "each": _finished(recorded, block["each"], needed)}


def finished_tracks(recorded: Recorded, tracks: Sequence[Mapping[str, Any]], needed: set[str]) -> list[dict[str, Any]]:
    """Complete the steps of tracks."""
    return [{**track, "each": _finished(recorded, track["each"], needed)} for track in tracks]


def _finished(recorded: Recorded, steps: Sequence[Mapping[str, Any]], needed: set[str]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for step in steps:
        if step["do"] == "together":
            inner = list(flat(_finished(recorded, step["steps"], needed)))
            made += [{**step, "steps": inner}] if inner else []
        elif not step.get("model") or step["model"] in needed:
            made += _finished_step(recorded, step)
    return made


def _finished_step(recorded: Recorded, step: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Complete a step with what repro.py cannot work out by itself."""
    if step["do"] == "load":
        return [_load(recorded, dict(step))]
    if step["do"] == "infer":
        return _inferences(recorded, dict(step))
    if step["do"] == "request":
        return [_request(dict(step))]
    return [dict(step)]


def _load(recorded: Recorded, step: dict[str, Any]) -> dict[str, Any]:
    config, files = step.pop("config", None), list(step.pop("files", ()))
    if config is None and not files and not sends_files(recorded):
        return step
    state = recorded.added_state(step["model"])
    folder = recorded.model_folder(state, step["model"])
    if sends_files(recorded):
        files = files or list(sendable_files(folder))
        config = config_json(config_text(recorded, state, step["model"])) if config is None else config
    text = config if config is None or isinstance(config, str) else json.dumps(config)
    return {**step, "config": text, "files": files, "state": state}


def _request(step: dict[str, Any]) -> dict[str, Any]:
    """Write the body as the bytes that the step sends, in base64."""
    body, headers = step.get("body"), dict(step.get("headers") or {})
    is_base64 = isinstance(body, Mapping) and set(body) == {"base64"}
    if body is None or isinstance(body, str):
        sent = (body or "").encode()
    elif is_base64:
        sent = base64.b64decode(body["base64"])
    else:
        sent = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
    told = {"method": step.get("method", "GET"), "headers": headers, "body": base64.b64encode(sent).decode()}
    return {**step, **told}


def _inferences(recorded: Recorded, step: dict[str, Any]) -> list[dict[str, Any]]:
    """One step for each combination of a sweep, with the inputs that it sends."""
    from tritonchaos import pbtxt

    state = recorded.added_state(step["model"])
    try:
        config: Any = pbtxt.parse(config_text(recorded, state, step["model"]))
    except TritonChaosError as error:
        raise UsageError(f"the inputs of model {step['model']} cannot be read: {error}") from error
    batches = step.pop("batch", None) or [1 if config.max_batch_size else None]
    shapes = step.pop("shapes", None) or [None]
    clients = step.pop("concurrency", None) or [1]
    equal = _copied(recorded, step["model"])
    points = [(batch, shape, count) for batch in batches for shape in shapes for count in clients][:_SWEEP_AT_MOST]
    made: list[dict[str, Any]] = []
    for batch, shape, count in points:
        one = {
            **step,
            "inputs": [_input(tensor, batch, shape) for tensor in config.input],
            "outputs": [tensor.name for tensor in config.output],
            "equal": equal,
        }
        made.append(one if count == 1 else {"do": "together", "gap_s": 0.0, "steps": [one] * count})
    return made


def _input(tensor: Any, batch: int | None, shape: Sequence[int] | None) -> dict[str, Any]:
    dims = [_OPEN_DIM if dim < 0 else dim for dim in tensor.dims] if shape is None else list(shape)
    front = [] if batch is None else [batch]
    return {"name": tensor.name, "datatype": datatype_of(tensor), "shape": [*front, *dims]}


def _copied(recorded: Recorded, model: str) -> dict[str, str]:
    """Output -> what it must be equal to: an input, or the number of the version that answers; others are not here."""
    models = recorded.scenario.get("models")
    entry = models.get(model) if isinstance(models, Mapping) else None
    if not isinstance(entry, Mapping) or "template" not in entry:
        return {}
    try:
        read = find_template(str(entry["template"])).read
    except TritonChaosError:
        return {}
    inputs = {tensor.name for tensor in read.inputs}
    return {output.name: output.expected for output in read.outputs if output.expected in (*inputs, VERSION)}
