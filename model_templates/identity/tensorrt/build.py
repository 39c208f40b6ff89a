"""Builds the weight-free identity engine with TensorRT, or with TensorRT-RTX where only that is installed.

Source: TensorRT and TensorRT for RTX Python API. A plan depends on the library's version and on the GPU.
"""

from __future__ import annotations

import ctypes
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARIES = ("tensorrt", "tensorrt_rtx")
DATATYPES = {
    "BF16": "bfloat16",
    "BOOL": "bool",
    "FP16": "float16",
    "FP32": "float32",
    "INT32": "int32",
    "INT64": "int64",
    "INT8": "int8",
    "UINT8": "uint8",
}
# An open dimension is built for sizes from 1 to this; requests have up to 8.
LARGEST_OPEN_DIM = 64
# TensorRT-RTX builds without a GPU, but then must be told what for.
WITHOUT_GPU = "SM86"
# CUDA driver API, CUdevice_attribute.
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76


def identify() -> dict[str, str]:
    """Say with which library and for which device a plan would be built."""
    library = import_library()
    return {"library": library.__name__, "version": library.__version__, "device": device()}


def build(out: Path, parameters: dict[str, Any]) -> dict[str, Any]:
    """Build the plan and say what its inputs and outputs are.

    Args:
        parameters: datatype; dims without the batch dimension, -1 is any size; max_batch_size, 0 for no batch
            dimension.
    """
    trt = import_library()
    logger = trt.Logger(trt.Logger.INFO)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    largest = make_identity(trt, network, parameters)
    config = builder.create_builder_config()
    add_profile(builder, config, network.get_input(0), largest)
    if trt.__name__ == "tensorrt_rtx" and device() == "cpu":
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, WITHOUT_GPU), 0)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit(f"{trt.__name__} {trt.__version__} gave no plan; its messages are above")
    out.write_bytes(plan)
    return {**identify(), **read_back(trt, logger, network, out)}


def import_library() -> ModuleType:
    """Import the first library that is there."""
    reasons = []
    for name in LIBRARIES:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            reasons.append(f"{name}: {error}")
    raise SystemExit("neither tensorrt nor tensorrt_rtx can be imported (" + "; ".join(reasons) + ")")


def device() -> str:
    """Name and compute capability of the first GPU that CUDA sees, or "cpu"; makes no CUDA context."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "cpu"
    handle, major, minor, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(handle), 0):
        return "cpu"
    cuda.cuDeviceGetName(name, len(name), handle)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), COMPUTE_CAPABILITY_MAJOR, handle)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), COMPUTE_CAPABILITY_MINOR, handle)
    return f"{name.value.decode()} {major.value}.{minor.value}"


def make_identity(trt: ModuleType, network: Any, parameters: dict[str, Any]) -> list[int]:
    """Add INPUT and OUTPUT to the network; return the largest size of each dimension."""
    datatype, dims, batch = parameters["datatype"], list(parameters["dims"]), parameters["max_batch_size"]
    if datatype not in DATATYPES:
        raise SystemExit(f"TensorRT has no datatype {datatype}; it has {', '.join(sorted(DATATYPES))}")
    shape = [-1, *dims] if batch else dims
    source = network.add_input("INPUT", getattr(trt, DATATYPES[datatype]), shape)
    output = network.add_identity(source).get_output(0)
    output.name = "OUTPUT"
    network.mark_output(output)
    largest = [LARGEST_OPEN_DIM if dim < 0 else dim for dim in dims]
    return [batch, *largest] if batch else largest


def add_profile(builder: Any, config: Any, source: Any, largest: list[int]) -> None:
    """Give open dimensions an optimization profile from 1 to their largest size."""
    if -1 not in source.shape:
        return
    smallest = [1 if dim < 0 else dim for dim in source.shape]
    profile = builder.create_optimization_profile()
    profile.set_shape(source.name, smallest, largest, largest)
    config.add_optimization_profile(profile)


def read_back(trt: ModuleType, logger: Any, network: Any, out: Path) -> dict[str, Any]:
    """List inputs and outputs: of the plan itself, or where there is no GPU to read it with, of the network."""
    tensors = [network.get_input(0), network.get_output(0)]
    told = [tell(tensor.name, tensor.dtype, tensor.shape) for tensor in tensors]
    if device() == "cpu":
        return {"tensors": told, "read_from": "network"}
    plan = trt.Runtime(logger).deserialize_cuda_engine(out.read_bytes())
    if plan is None:
        raise SystemExit("the plan that was built cannot be deserialized; the messages are above")
    names = [plan.get_tensor_name(index) for index in range(plan.num_io_tensors)]
    found = [tell(name, plan.get_tensor_dtype(name), plan.get_tensor_shape(name)) for name in names]
    if found != told:
        raise SystemExit(f"the plan has the tensors {found}, expected {told}")
    return {"tensors": found, "read_from": "plan"}


def tell(name: str, dtype: Any, shape: Any) -> dict[str, Any]:
    return {"name": name, "datatype": dtype.name, "dims": list(shape)}
