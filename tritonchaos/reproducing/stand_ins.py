"""A model of the planted backend in place of a user's model that is not handed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tritonchaos.errors import TritonChaosError, UsageError
from tritonchaos.reproducing.model_tensors import datatype_of


def stand_in(first: Path, folder: Path, model: str) -> dict[str, bytes]:
    """Make a model of the planted backend with the inputs and outputs of a user's model, and no plants.

    Args:
        first: The model as it was added: the engine fits that, so that later states are as wrong as they were.
        folder: The model in the state that is wanted.

    Raises:
        UsageError: An output has no input of its datatype and dims to copy, or a configuration cannot be read.
    """
    config, added = _parsed(folder, model), _parsed(first, model)
    inputs = [_tensor(tensor) for tensor in added.input]
    outputs = [_copying(_tensor(tensor), inputs, model) for tensor in added.output]
    if not outputs:
        raise UsageError(f"nothing can stand in for model {model}: its config.pbtxt names no outputs")
    served = {"max_batch_size": added.max_batch_size, "inputs": inputs, "outputs": outputs}
    return {"config.pbtxt": _config(config), "1/engine.json": json.dumps(served, indent=1).encode() + b"\n"}


def _parsed(folder: Path, model: str) -> Any:
    from tritonchaos import pbtxt

    try:
        return pbtxt.parse((folder / "config.pbtxt").read_text(encoding="utf-8", errors="surrogateescape"))
    except (TritonChaosError, OSError) as error:
        raise UsageError(
            f"nothing can stand in for model {model}: {error}",
            hint="leave --stand-in away; its weights are left out anyway",
        ) from error


def _tensor(tensor: Any) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": datatype_of(tensor), "dims": list(tensor.dims)}


def _copying(output: dict[str, Any], inputs: list[dict[str, Any]], model: str) -> dict[str, Any]:
    source = next((i for i in inputs if (i["datatype"], i["dims"]) == (output["datatype"], output["dims"])), None)
    if source is None:
        raise UsageError(
            f"nothing can stand in for model {model}: output {output['name']} is like none of its inputs",
            hint="leave --stand-in away; its weights are left out anyway",
        )
    return {**output, "copies": source["name"]}


def _config(config: Any) -> bytes:
    """The configuration with our backend and on the CPU; parameters may hold paths and secrets, and go."""
    from google.protobuf import text_format

    for name in ("platform", "default_model_filename", "parameters", "model_repository_agents", "optimization"):
        config.ClearField(name)
    config.backend = "planted"
    for group in config.instance_group:
        group.kind = group.KIND_CPU
        group.ClearField("gpus")
    return str(text_format.MessageToString(config)).encode()
