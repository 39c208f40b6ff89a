"""Serve identity, and refuse a configuration that disagrees with engine.json, in the TensorRT backend's words.

Runs inside Triton's python backend stub, so it imports nothing of tritonchaos.
"""

import json
import os
import tempfile
import uuid
from pathlib import Path

import triton_python_backend_utils as pb_utils

CHUNK_BYTES = 1 << 20


class Refused(Exception):
    """The configuration does not fit the engine."""


class TritonPythonModel:
    """One model instance."""

    def initialize(self, args):
        """Compare configuration and engine; leave behind what the parameters ask for."""
        config = json.loads(args["model_config"])
        try:
            self.engine = _load_engine(args)
            _check(self.engine, config, args["model_name"], args["model_instance_name"])
        except Refused as refusal:
            _leave_files(config, "failed")
            raise pb_utils.TritonModelException(str(refusal)) from None
        _leave_files(config, "good")

    def execute(self, requests):
        """Answer every request with its own inputs."""
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        requested = set(request.requested_output_names())
        outputs = []
        for output in self.engine["outputs"]:
            if output["name"] not in requested:
                continue
            tensor = pb_utils.get_input_tensor_by_name(request, output["copies"])
            wrong = _shape_error(_named(self.engine["inputs"], output["copies"]), tensor.shape(), self._batches())
            if wrong:
                return pb_utils.InferenceResponse(error=pb_utils.TritonError(wrong))
            outputs.append(_copy(output, tensor))
        return pb_utils.InferenceResponse(output_tensors=outputs)

    def _batches(self):
        return self.engine["max_batch_size"] > 0


def _load_engine(args):
    path = Path(args["model_repository"]) / args["model_version"] / "engine.json"
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise Refused(f"unable to find '{path}' for model instance '{args['model_instance_name']}'") from None
    except ValueError:
        raise Refused(f"unable to load engine '{path}': not JSON") from None


def _copy(output, tensor):
    # NumPy has no BF16; DLPack has, but it has no strings.
    if output["datatype"] == "BF16":
        return pb_utils.Tensor.from_dlpack(output["name"], tensor.to_dlpack())
    return pb_utils.Tensor(output["name"], tensor.as_numpy())


def _named(tensors, name):
    return next((tensor for tensor in tensors if tensor["name"] == name), None)


def _shape_error(engine, shape, batches):
    wanted = [-1] * batches + engine["dims"]
    if len(wanted) != len(shape):
        return f"model expected {len(wanted)} dimensions but received {len(shape)} dimensions"
    for number, want in enumerate(wanted):
        got = shape[number]
        if want not in (-1, got):
            return f"model expected the shape of dimension {number} to be between {want} and {want} but received {got}"
    return None


# --- the TensorRT backend's checks, in its order and in its words --------------------------------
# Source: triton-inference-server/tensorrt_backend, src/instance_state.cc and src/tensorrt_utils.cc; names:
# triton-inference-server/core, src/model_config_utils.cc.


def _check(engine, config, model, instance):
    inputs, outputs = config.get("input", []), config.get("output", [])
    if len(inputs) > len(engine["inputs"]):
        raise Refused(
            f"unable to load model '{model}', configuration expects {len(inputs)} inputs, "
            f"model provides at most {len(engine['inputs'])}"
        )
    _check_names("input", inputs, engine["inputs"])
    _check_names("output", outputs, engine["outputs"])
    _check_tensors("input", inputs, engine, config, model, instance)
    if len(inputs) < len(engine["inputs"]):
        raise Refused("failed to specify the dimensions of all input tensors or values of all input shape tensors")
    _check_tensors("output", outputs, engine, config, model, instance)
    if config["max_batch_size"] > engine["max_batch_size"]:
        raise Refused(
            f"unexpected configuration maximum batch size {config['max_batch_size']} for '{instance}', "
            f"model maximum is {engine['max_batch_size']}"
        )


def _check_names(word, tensors, engine_tensors):
    allowed = sorted(tensor["name"] for tensor in engine_tensors)
    for tensor in tensors:
        if tensor["name"] not in allowed:
            raise Refused(f"unexpected inference {word} '{tensor['name']}', allowed {word}s are: {', '.join(allowed)}")


def _check_tensors(word, tensors, engine, config, model, instance):
    for tensor in tensors:
        expected = _named(engine[word + "s"], tensor["name"])
        # ModelConfig calls it TYPE_STRING, the inference protocol BYTES.
        found = tensor["data_type"].replace("TYPE_STRING", "TYPE_BYTES")
        if found != "TYPE_" + expected["datatype"]:
            raise Refused(
                f"unexpected datatype TYPE_{expected['datatype']} for inference {word} '{tensor['name']}', "
                f"expecting {found} for {instance}"
            )
        _check_dims(tensor, expected, engine["max_batch_size"] > 0, config["max_batch_size"] > 0, model)


def _check_dims(tensor, expected, engine_batches, config_batches, model):
    wanted = [-1] * engine_batches + expected["dims"]
    found = [-1] * config_batches + [int(dim) for dim in tensor["dims"]]
    if engine_batches == config_batches and _fits(wanted, found):
        return
    how = (
        "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, "
        "making complete shape "
        if config_batches
        else "shape "
    )
    raise Refused(
        f"model '{model}', tensor '{tensor['name']}': the model expects {len(wanted)} dimensions "
        f"(shape {_shape(wanted)}) but the model configuration specifies {len(found)} dimensions ({how}{_shape(found)})"
    )


def _fits(wanted, found):
    # A dimension that is open (-1) on either side fits.
    return len(wanted) == len(found) and all(
        want == found[number] or -1 in (want, found[number]) for number, want in enumerate(wanted)
    )


def _shape(dims):
    return "[" + ",".join(str(dim) for dim in dims) + "]"


# --- planted defects -----------------------------------------------------------------------------


def _leave_files(config, outcome):
    temp_bytes = _parameter(config, f"leave_temp_bytes_per_{outcome}_load")
    shm_bytes = _parameter(config, f"leave_shm_bytes_per_{outcome}_load")
    if temp_bytes:
        _leave(Path(tempfile.gettempdir()), temp_bytes, outcome)
    if shm_bytes:
        _leave(Path("/dev/shm"), shm_bytes, outcome)


def _parameter(config, name):
    return int(config.get("parameters", {}).get(name, {}).get("string_value", "0"))


def _leave(folder, count, outcome):
    path = folder / f"tritonchaos_left_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    with path.open("wb") as file:
        for start in range(0, count, CHUNK_BYTES):
            file.write(b"\xa5" * min(CHUNK_BYTES, count - start))
    pb_utils.Logger.log_info(f"planted: left {count} bytes in {path} on purpose ({outcome} load)")
