"""Tensors of a served model, and values to send it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.random import Generator
    from numpy.typing import NDArray

# As the inference protocol spells them. Source: Triton model_configuration.md, "Datatypes".
DATATYPES: Final = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BF16",
    "BYTES",
)
_LARGEST_FREE_DIM: Final = 8
_LONGEST_STRING_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output as the model configuration declares it.

    Attributes:
        datatype: As the inference protocol spells it, such as "FP32" or "BYTES".
        dims: Without the batch dimension; -1 is any size.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]


def config_datatype(datatype: str) -> str:
    """Spell a datatype as config.pbtxt does: "TYPE_FP32"; BYTES is called TYPE_STRING there."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"


def numpy_dtype(datatype: str) -> dtype[Any]:
    """Give the NumPy dtype that carries a datatype, the one that tritonclient wants.

    For BF16 that is `ml_dtypes.bfloat16` since the tritonclient of 26.06; it was float32, lower half zero, before.
    """
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    return np.dtype(triton_to_np_dtype(datatype))


def random_shape(dims: Sequence[int], random: Random) -> tuple[int, ...]:
    """Give every open dimension (-1) a small size, at least 1."""
    return tuple(random.randint(1, _LARGEST_FREE_DIM) if dim < 0 else dim for dim in dims)


def random_values(datatype: str, shape: Sequence[int], random: Random) -> NDArray[Any]:
    """Make values of a datatype, the same for the same random; never NaN or infinite.

    One draw seeds NumPy's generator, so that a tensor of 64 MiB takes a fraction of a second.

    Returns:
        Array of the shape asked for and of `numpy_dtype`; floats lie in [-1, 1), integers use their whole range.
    """
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(random.getrandbits(64)))
    count = int(np.prod(shape, dtype=np.int64))
    return _flat_values(datatype, count, generator).reshape(tuple(shape))


def _flat_values(datatype: str, count: int, generator: Generator) -> NDArray[Any]:
    import numpy as np

    carried = numpy_dtype(datatype)
    if datatype == "BYTES":
        return _strings(count, generator)
    if datatype == "BOOL":
        return np.frombuffer(generator.bytes(count), dtype=np.uint8) > 127
    if datatype in {"FP16", "FP32", "FP64", "BF16"}:
        wide = generator.random(count, dtype=np.float64 if datatype == "FP64" else np.float32) * 2 - 1
        return (_cut_to_bf16(wide) if datatype == "BF16" else wide).astype(carried, copy=False)
    return np.frombuffer(bytearray(generator.bytes(count * carried.itemsize)), dtype=carried)


def _cut_to_bf16(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _strings(count: int, generator: Generator) -> NDArray[Any]:
    import numpy as np

    lengths = generator.integers(0, _LONGEST_STRING_BYTES + 1, size=count)
    ends = np.cumsum(lengths)
    blob = generator.bytes(int(ends[-1]) if count else 0)
    values = np.empty(count, dtype=object)
    values[:] = [blob[end - length : end] for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
    return values
