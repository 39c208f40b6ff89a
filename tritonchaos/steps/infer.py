"""Send inference requests and compare every output element with the expected value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tritonchaos.observations import Answer, Reply
from tritonchaos.plugins import STEPS, Contract, Workbench

if TYPE_CHECKING:
    from numpy.typing import NDArray


@STEPS.register
@dataclass(frozen=True, slots=True)
class Infer:
    """Send inference requests with made-up inputs and check every output element.

    Attributes:
        model: The scenario's name of the model.
        count: Number of requests, one after the other; the first that is refused or wrong ends the step.

    Source: KServe v2 inference protocol with the binary tensor data extension.
    """

    name: ClassVar[str] = "infer"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    count: int = 1

    def apply(self, bench: Workbench) -> Reply:
        """Send the requests; the reply is that of the last one sent, without its body."""
        served = bench.models[self.model]
        inputs = served.make_inputs(bench.random)
        expected = served.expected(inputs)
        for _ in range(max(self.count, 1)):
            reply, outputs = bench.client.infer(self.model, inputs, served.outputs, bench.deadline_s)
            if outputs is not None:
                _observe_outputs(bench, outputs, expected)
            if not isinstance(reply, Answer) or reply.status != 200 or not bench.observed.get("match"):
                break
        # Only refusals keep their body: a good one is megabytes, and its digest is recorded.
        is_good = isinstance(reply, Answer) and reply.status == 200
        return Answer(reply.status, b"", reply.elapsed_ns) if isinstance(reply, Answer) and is_good else reply


def _observe_outputs(
    bench: Workbench, outputs: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]
) -> None:
    difference = first_mismatch(outputs, expected)
    digest = hashlib.sha256()
    for name in sorted(outputs):
        digest.update(name.encode())
        digest.update(outputs[name].tobytes())
    bench.observe(match=difference is None, sha256=digest.hexdigest()[:16])
    if difference is not None:
        bench.observe(first_mismatch=difference)


def first_mismatch(outputs: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> str | None:
    """Say where outputs differ from what was expected, bit for bit, or None.

    Args:
        outputs: Output name -> tensor as answered.
        expected: Output name -> tensor; same names, shapes and datatypes are demanded.
    """
    import numpy

    for name, wanted in expected.items():
        if name not in outputs:
            return f"output {name} is missing; found {', '.join(sorted(outputs)) or 'none'}"
        found = outputs[name]
        if found.shape != wanted.shape:
            return f"{name} has shape {list(found.shape)}, expected {list(wanted.shape)}"
        differs = found != wanted
        if bool(numpy.any(differs)):
            where = tuple(int(i) for i in numpy.argwhere(differs)[0])
            wrong = int(numpy.count_nonzero(differs))
            return (
                f"{name}{list(where)} is {found[where]!r}, expected {wanted[where]!r} ({wrong} of {found.size} differ)"
            )
    return None
