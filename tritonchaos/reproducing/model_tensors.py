"""Inputs and outputs of a model, as its config.pbtxt declares them."""

from __future__ import annotations

from typing import Any

from tritonchaos.errors import TritonChaosError


def datatype_of(tensor: Any) -> str:
    """Datatype of an input or output of a ModelConfig, as the inference protocol spells it."""
    values = tensor.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
    name = str(values[tensor.data_type].name).partition("_")[2]
    return "BYTES" if name == "STRING" else name


def tensors_in_words(config: str) -> str:
    """Backend, inputs and outputs of a config.pbtxt in one line, dims as Triton writes them."""
    from tritonchaos import pbtxt

    try:
        read: Any = pbtxt.parse(config)
    except TritonChaosError:
        return "its config.pbtxt cannot be read"
    told = [f"{t.name} {datatype_of(t)} {list(t.dims)}" for t in read.input]
    answered = [f"{t.name} {datatype_of(t)} {list(t.dims)}" for t in read.output]
    served = read.backend or read.platform or "not named"
    batch = f", max_batch_size {read.max_batch_size}" if read.max_batch_size else ""
    return f"backend {served}, inputs {', '.join(told) or 'none'}, outputs {', '.join(answered) or 'none'}{batch}"
