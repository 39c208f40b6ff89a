"""Inference requests and responses with the binary tensor data extension, in tritonclient's encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np


class NamedTensor(Protocol):
    """An output to ask for."""

    @property
    def name(self) -> str: ...


def encode_request(
    inputs: Mapping[str, np.ndarray[Any, Any]], outputs: Sequence[NamedTensor], datatypes: Mapping[str, str]
) -> tuple[bytes, int | None]:
    """Return the body of an inference request and the length of its JSON part, None where that is all of it.

    Args:
        inputs: Tensors by name, with their full shape.
        outputs: What to ask for; empty: every output.
        datatypes: Triton datatype by input where the NumPy dtype does not tell it (BF16 is carried as float32).
    """
    # Imported here: it brings gevent along (a quarter of a second; it patches nothing).
    from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
    from tritonclient.utils import np_to_triton_dtype

    tensors = []
    for name, array in inputs.items():
        tensor = InferInput(name, list(array.shape), datatypes.get(name) or np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    wanted = [InferRequestedOutput(output.name) for output in outputs]
    body, header_length = InferenceServerClient.generate_request_body(tensors, outputs=wanted or None)
    return body, header_length


def decode_response(body: bytes, header_length: str | None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the output tensors of an inference response by name; numeric ones are read-only.

    Args:
        header_length: The response header Inference-Header-Content-Length, None where the body is all JSON.

    Raises:
        Exception: Of whatever kind tritonclient meets in a body that is not such a response.
    """
    from tritonclient.http import InferenceServerClient

    result = InferenceServerClient.parse_response_body(
        _Body(body), header_length=None if header_length is None else int(header_length)
    )
    names = [output["name"] for output in result.get_response().get("outputs", [])]
    return {name: result.as_numpy(name) for name in names}


class _Body:
    """A response body whose tensors are views: tritonclient takes slices of slices, each a copy if it were bytes."""

    def __init__(self, body: bytes) -> None:
        self._view = memoryview(body)

    def __getitem__(self, part: slice) -> bytes | memoryview:
        # Its JSON part, which comes first, must be bytes to be parsed.
        return self._view[part] if part.start else bytes(self._view[part])
