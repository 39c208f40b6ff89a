"""A model of the user's own, served from its folder; nothing is written there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tritonchaos import pbtxt
from tritonchaos.errors import ConfigTextError, ScenarioError
from tritonchaos.templates.serving import Machine, ServedModel
from tritonchaos.templates.tensors import Tensor, numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

OWN_VARIANT: Final = "own"

_CONFIG: Final = "config.pbtxt"
# Without an instance group these put their weights on a GPU where there is one; python and ensemble models do not.
_GPU_BY_ITSELF: Final = frozenset({"tensorrt", "onnxruntime", "pytorch", "tensorflow", "tensorrtllm", "vllm", "dali"})
_BACKEND_OF_PLATFORM: Final = {
    "tensorrt_plan": "tensorrt",
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorflow_savedmodel": "tensorflow",
    "tensorflow_graphdef": "tensorflow",
}


@dataclass(frozen=True, slots=True)
class OwnModel(ServedModel):
    """A model from a folder, with inputs and expected outputs that the scenario names.

    Attributes:
        zeros: Inputs are zeros (empty texts); else random values.
        given: Inputs from a file, name -> tensor with its full shape; then neither zeros nor random.
        wanted: What the model must answer, from a file; {}: outputs are not compared.
    """

    zeros: bool = False
    given: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    wanted: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def make_inputs(
        self, random: Random, batch: int | None = None, shape: Sequence[int] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Make one request's inputs; see `ServedModel.make_inputs`.

        Raises:
            ScenarioError: The model's inputs are not known, or those of a file would need another shape.
        """
        if not self.inputs:
            raise ScenarioError(
                f"model {self.name} cannot be sent requests: its {_CONFIG} names no inputs",
                hint="write inputs and outputs into it; what Triton completes by itself is not seen here",
            )
        if not self.given:
            return self._zeros(batch, shape) if self.zeros else ServedModel.make_inputs(self, random, batch, shape)
        if batch is not None or shape is not None:
            raise ScenarioError(
                f"the inputs of model {self.name} come from a file and have their shape", hint="use inputs: random"
            )
        return dict(self.given)

    def _zeros(self, batch: int | None, shape: Sequence[int] | None) -> dict[str, NDArray[Any]]:
        """Make the smallest inputs: a batch of one, and 1 for every open dimension."""
        front = (1,) if self.max_batch_size else ()
        front = front if batch is None else (batch,)
        return {
            tensor.name: _zeros_of(
                tensor.datatype, (*front, *(shape or ((1 if dim < 0 else dim) for dim in tensor.dims)))
            )
            for tensor in self.inputs
        }

    def expected(self, inputs: Mapping[str, NDArray[Any]], version: str = "") -> dict[str, NDArray[Any]]:
        """Give the outputs of the scenario's file; {} without one."""
        return dict(self.wanted)


def serve_own(
    model: str,
    folder: Path,
    machine: Machine,
    inputs: str = "random",
    expect_outputs: str = "none",
    base: Path = Path(),
) -> OwnModel:
    """Make a model of a folder ready to be served.

    Args:
        model: Name that it is served by; a `name` in its config.pbtxt is replaced by it.
        folder: Of the model, with its version folders; only read.
        inputs: "zeros", "random", or a file: .npz, or .json as the inference protocol writes inputs.
        expect_outputs: "none", or a file .npz.
        base: Folder that the files are looked for from.

    Raises:
        ScenarioError: A file does not fit the model.
        ConfigTextError: config.pbtxt cannot be read.
    """
    files: dict[str, bytes | Path] = dict(_files(folder))
    config = _config(model, folder, files)
    tensors = tuple(_tensors(config.input)), tuple(_tensors(config.output))
    is_word = inputs in ("zeros", "random")
    return OwnModel(
        name=model,
        template="",
        variant=OWN_VARIANT,
        needs_gpu=_needs_gpu(config, machine),
        files=files,
        backends={},
        inputs=tensors[0],
        outputs=tensors[1],
        max_batch_size=config.max_batch_size,
        zeros=inputs == "zeros",
        given={} if is_word else _read(base / inputs, tensors[0]),
        wanted={} if expect_outputs == "none" else _read(base / expect_outputs, tensors[1]),
    )


def _files(folder: Path) -> Iterator[tuple[str, Path | bytes]]:
    """Yield everything below a folder, following symlinks; an empty folder ends in "/"."""
    for here, folders, names in os.walk(folder, followlinks=True):
        if Path(here).resolve() in Path(here).parents:
            raise ScenarioError(f"{here} leads back to a folder that it lies in")
        below = Path(here).relative_to(folder).as_posix()
        prefix = "" if below == "." else f"{below}/"
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        if prefix and not folders and not names:
            yield prefix, b""
        for name in sorted(names):
            yield f"{prefix}{name}", Path(here) / name


def _config(model: str, folder: Path, files: dict[str, bytes | Path]) -> Any:
    """Parse config.pbtxt; a model may lack it, and is then known by nothing but its files."""
    if _CONFIG not in files:
        return pbtxt.parse("")
    text = (folder / _CONFIG).read_bytes().decode("utf-8", "surrogateescape")
    try:
        config: Any = pbtxt.parse(text)
    except ConfigTextError as error:
        raise ConfigTextError(f"{folder / _CONFIG}: {error.message}", hint=error.hint) from error
    if config.name and config.name != model:
        files[_CONFIG] = pbtxt.edit(text, {"name": model}).encode("utf-8", "surrogateescape")
    return config


def _tensors(entries: Any) -> Iterator[Tensor]:
    for entry in entries:
        datatype = type(entry).DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[entry.data_type].name
        spelled = datatype.removeprefix("TYPE_")
        yield Tensor(entry.name, "BYTES" if spelled == "STRING" else spelled, tuple(entry.dims))


def _needs_gpu(config: Any, machine: Machine) -> bool:
    """Say whether the model is put on a GPU: where its instance group says so, or its backend by itself."""
    kinds = {type(group).Kind.Name(group.kind) for group in config.instance_group}
    backend = config.backend or _BACKEND_OF_PLATFORM.get(config.platform, config.platform)
    if "KIND_GPU" in kinds or backend == "tensorrt":
        return True
    return machine.has_gpu and backend in _GPU_BY_ITSELF and kinds <= {"KIND_AUTO"}


def _smallest(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 if dim < 0 else dim for dim in dims)


def _zeros_of(datatype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    import numpy as np

    return np.full(shape, b"", dtype=object) if datatype == "BYTES" else np.zeros(shape, dtype=numpy_dtype(datatype))


# --- files of tensors ----------------------------------------------------------------------------


def _read(file: Path, tensors: Sequence[Tensor]) -> dict[str, NDArray[Any]]:
    """Read tensors by name from a .npz or .json file, and check them against what the model has."""
    datatypes = {tensor.name: tensor.datatype for tensor in tensors}
    found = _read_json(file, datatypes) if file.suffix == ".json" else _read_npz(file)
    unknown = [name for name in found if name not in datatypes]
    if unknown or not found:
        what = f"tensor {unknown[0]!r}" if unknown else "no tensors"
        raise ScenarioError(f"{file}: found {what}, expected some of {', '.join(datatypes) or 'none: it has none'}")
    return {name: _carried(file, name, values, datatypes[name]) for name, values in found.items()}


def _read_npz(file: Path) -> dict[str, NDArray[Any]]:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError) as error:
        raise ScenarioError(
            f"{file}: found what NumPy cannot read ({error}), expected a .npz file of tensors by name",
            hint="texts are stored as bytes: numpy.array([b'a'])",
        ) from None


def _read_json(file: Path, datatypes: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    import numpy as np

    try:
        entries = json.loads(file.read_bytes())["inputs"]
        texts = {name for name, datatype in datatypes.items() if datatype == "BYTES"}
        return {
            entry["name"]: np.array(
                [str(text).encode() for text in entry["data"]] if entry["name"] in texts else entry["data"],
                dtype=object if entry["name"] in texts else numpy_dtype(datatypes.get(entry["name"], "FP32")),
            ).reshape(entry["shape"])
            for entry in entries
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScenarioError(
            f"{file}: found what cannot be read as inputs ({type(error).__name__}: {error}), "
            'expected {"inputs": [{"name", "shape", "data"}]} as in the inference protocol'
        ) from None


def _carried(file: Path, name: str, values: NDArray[Any], datatype: str) -> NDArray[Any]:
    wanted = numpy_dtype(datatype)
    if datatype == "BYTES" and values.dtype.kind in "SO":
        return values.astype(object)
    if values.dtype != wanted:
        raise ScenarioError(f"{file}: found {name} of type {values.dtype}, expected {wanted} for {datatype}")
    return values
