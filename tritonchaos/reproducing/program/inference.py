"""Inference requests with made-up inputs, in the binary form of the protocol."""

from __future__ import annotations

import json
import struct
from typing import Any

from tritonchaos.reproducing.program.calls import call

# Datatype -> how struct packs one element; BF16 is the upper half of FP32, BYTES have their length in front.
FORMATS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip


def tensor_bytes(datatype: str, shape: list[int], turn: int) -> bytes:
    """Bytes of a tensor: small whole numbers that differ from turn to turn, repeated until it is full."""
    count = 1
    for size in shape:
        count *= size
    numbers = [(number * 7 + turn) % 100 for number in range(min(count, 4096))]
    if datatype == "BYTES":
        pattern = [struct.pack("<I", len(str(number))) + str(number).encode() for number in numbers]
    elif datatype == "BF16":
        pattern = [struct.pack("<f", number)[2:] for number in numbers]
    else:
        pattern = [
            struct.pack("<" + FORMATS[datatype], number % 2 if datatype == "BOOL" else number) for number in numbers
        ]
    whole, rest = divmod(count, max(len(pattern), 1))
    return b"".join(pattern) * whole + b"".join(pattern[:rest])


def infer(port: int, step: dict[str, Any], turn: int) -> dict[str, Any]:
    """Send one request; the answer's "match" says whether outputs are as they must be, absent: not compared."""
    inputs, bodies = [], {}
    for tensor in step["inputs"]:
        body = tensor_bytes(tensor["datatype"], tensor["shape"], turn)
        bodies[tensor["name"]] = body
        inputs.append(dict(tensor, parameters={"binary_data_size": len(body)}))
    outputs = [{"name": name, "parameters": {"binary_data": True}} for name in step["outputs"]]
    header = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    version = "/versions/{}".format(step["version"]) if step.get("version") else ""
    path = "/v2/models/{}{}/infer".format(step["model"], version)
    answer = call(
        port, "POST", path, step["deadline_s"], header + b"".join(bodies.values()),
        {"Inference-Header-Content-Length": str(len(header)), "Content-Type": "application/octet-stream"},
    )  # fmt: skip
    if answer["status"] == 200 and step.get("equal"):
        found, answer["model_version"] = output_bytes(answer)
        asked = str(step.get("version") or answer["model_version"])
        # A template's output may be the number of the version that answers, as INT64.
        bodies["model_version"] = struct.pack("<q", int(asked)) if asked.isdigit() else b""
        wrong = [name for name, source in step["equal"].items() if found.get(name) != bodies[source]]
        answer["match"] = not wrong
        answer["why"] = "outputs differ from what they must be: " + ", ".join(wrong) if wrong else ""
    return answer


def output_bytes(answer: dict[str, Any]) -> tuple[dict[str, bytes], str]:
    """Name -> bytes of each binary output, and the version of the model that answered."""
    body = answer["body"]
    length = int(answer["headers"].get("inference-header-content-length", len(body)))
    try:
        told = json.loads(body[:length])
    except ValueError:
        return {}, ""
    found, at = {}, length
    for output in told.get("outputs", []):
        size = int(output.get("parameters", {}).get("binary_data_size", 0))
        found[output["name"]] = body[at : at + size]
        at += size
    return found, str(told.get("model_version", ""))
