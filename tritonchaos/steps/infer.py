"""Send inference requests and compare every output element with the expected value."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import Answer, JsonValue, Reply
from tritonchaos.plugins import STEPS, Contract, Workbench

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tritonchaos.client import ModelCalls, TritonClient
    from tritonchaos.templates import ServedModel


def _one_or_more(value: JsonValue) -> JsonValue:
    return tuple(value) if isinstance(value, list) else (value,)


def _schema(least: int) -> WithJsonSchema:
    number = {"type": "integer", "minimum": least}
    return WithJsonSchema({"anyOf": [number, {"type": "array", "items": number, "minItems": 1}]})


Size = Annotated[int, Field(ge=0, le=1 << 31)]
Batches = Annotated[tuple[Annotated[int, Field(ge=1, le=1 << 20)], ...], BeforeValidator(_one_or_more), _schema(1)]
Workers = Annotated[tuple[Annotated[int, Field(ge=1, le=256)], ...], BeforeValidator(_one_or_more), _schema(1)]
# The JSON part of a response, which comes first, names the version; the tensors behind it may be gigabytes.
_HEADER_BYTES: Final = 1 << 16


@STEPS.register
@dataclass(frozen=True, slots=True)
class Infer:
    """Send inference requests with made-up inputs and check every output element.

    Several values of batch, shapes and concurrency are a sweep: every combination is tried, one after the other; the
    first request that is refused or answered wrongly ends it.

    Attributes:
        model: The scenario's name of the model.
        count: Number of requests of each combination and worker, one after the other.
        version: Version of the model that is asked; absent: the server chooses.
        batch: Size of the batch dimension, or a list of sizes, also such as the model does not allow.
        shapes: Shapes of the inputs without the batch dimension, one after the other.
        concurrency: Number of clients that send at the same time, each inputs of its own; or a list.

    Source: KServe v2 inference protocol with the binary tensor data extension.
    """

    name: ClassVar[str] = "infer"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    ways: ClassVar[tuple[str, ...]] = ("http", "grpc", "both")

    model: str
    count: int = 1
    version: str = ""
    batch: Batches = ()
    shapes: tuple[tuple[Size, ...], ...] = ()
    concurrency: Workers = (1,)

    def __post_init__(self) -> None:
        if not self.concurrency:
            raise ValueError("found an empty list of concurrency, expected a number of clients")

    def apply(self, bench: Workbench) -> Reply:
        """Send the requests; the reply is the bad one, else the slowest of the last combination, without its body.

        Raises:
            ScenarioError: What the model takes and gives is not known.
        """
        served = bench.models.get(self.model)
        if served is None:
            raise ScenarioError(
                f"infer {self.model}: found a model of --model-repository, expected one under `models`",
                hint="name it there with its `path`, so that its inputs are known",
            )
        for point in self._sweep():
            results = self._at(point, served, bench)
            worst = next((one for one in results if not one.is_good), None)
            if worst is not None:
                break
        _observe(bench, results, worst)
        if worst is not None and self._is_swept():
            bench.observe(at=point.told())
        reply = (worst or max(results, key=lambda one: one.reply.elapsed_ns)).reply
        # Only refusals keep their body: a good one is megabytes, and its digest is recorded.
        is_200 = isinstance(reply, Answer) and reply.status == 200
        return Answer(reply.status, b"", reply.elapsed_ns) if isinstance(reply, Answer) and is_200 else reply

    def _is_swept(self) -> bool:
        return max(len(self.batch), 1) * max(len(self.shapes), 1) * len(self.concurrency) > 1

    def _sweep(self) -> Iterator[_Point]:
        for batch, shape, workers in itertools.product(self.batch or (None,), self.shapes or (None,), self.concurrency):
            yield _Point(batch, shape, workers)

    def _at(self, point: _Point, served: ServedModel, bench: Workbench) -> list[_Result]:
        """Send the requests of one combination; the inputs of every client are made first, in order."""
        senders = []
        for _ in range(point.workers):
            inputs = served.make_inputs(bench.random, point.batch, point.shape)
            senders.append(_Sender(self, served, inputs, served.expected(inputs), bench.deadline_s))
        if len(senders) == 1:
            senders[0].send(bench.asked)
        else:
            _send_at_once(senders, bench.client, bench.via)
        return [sender.result() for sender in senders]


@dataclass(frozen=True, slots=True)
class _Point:
    batch: int | None
    shape: tuple[int, ...] | None
    workers: int

    def told(self) -> str:
        parts = [f"batch {self.batch}"] if self.batch is not None else []
        parts += [f"shape {list(self.shape)}"] if self.shape is not None else []
        return ", ".join([*parts, f"{self.workers} clients"])


@dataclass(frozen=True, slots=True)
class _Result:
    """Where one client's requests ended.

    Attributes:
        difference: Where the outputs differ from what was expected; None: nowhere, or there are none.
    """

    reply: Reply
    outputs: Mapping[str, NDArray[Any]] | None
    difference: str | None

    @property
    def is_good(self) -> bool:
        return isinstance(self.reply, Answer) and self.reply.status == 200 and self.difference is None


@dataclass(slots=True)
class _Sender:
    """One client's requests, all with the same inputs."""

    step: Infer
    served: ServedModel
    inputs: Mapping[str, NDArray[Any]]
    expected: Mapping[str, NDArray[Any]]
    deadline_s: float
    ended: list[_Result] = field(default_factory=list)
    error: BaseException | None = None

    def send(self, client: ModelCalls) -> None:
        """Send one after the other until one is bad."""
        datatypes = {tensor.name: tensor.datatype for tensor in self.served.inputs}
        for _ in range(max(self.step.count, 1)):
            reply, outputs = client.infer(
                self.step.model, self.inputs, self.served.outputs, self.deadline_s, self.step.version, datatypes
            )
            difference = None if outputs is None else first_mismatch(outputs, self._expected_of(reply))
            self.ended = [_Result(reply, outputs, difference)]
            if not self.ended[0].is_good:
                return

    def _expected_of(self, reply: Reply) -> Mapping[str, NDArray[Any]]:
        """What the version must answer that was asked, or where the server chose, that answered by its own word."""
        if not self.served.answers_by_version:
            return self.expected
        return self.served.expected(self.inputs, self.step.version or _version(reply))

    def result(self) -> _Result:
        """The last request's, which is the bad one if there is one."""
        if self.error is not None:
            raise self.error
        return self.ended[0]


def _send_at_once(senders: Sequence[_Sender], client: TritonClient, via: str) -> None:
    """Let every sender send from a thread and over a connection of its own."""
    from tritonchaos.client import TritonClient

    begin = threading.Barrier(len(senders))

    def run(sender: _Sender) -> None:
        own = TritonClient(client.url, client.grpc)
        try:
            asked = own.over(via)
            begin.wait()
            sender.send(asked)
        except BaseException as error:  # carried to the thread that waits, which raises it
            begin.abort()
            sender.error = error
        finally:
            own.close()

    threads = [threading.Thread(target=run, args=(sender,), name="infer", daemon=True) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _observe(bench: Workbench, results: Sequence[_Result], worst: _Result | None) -> None:
    """Record whether outputs match, their digest, and which versions answered."""
    shown = [worst] if worst is not None else list(results)
    if all(result.outputs is None for result in shown):
        return
    digest = hashlib.sha256()
    for result in shown:
        for name in sorted(result.outputs or ()):
            digest.update(name.encode())
            digest.update((result.outputs or {})[name].tobytes())
    difference = next((result.difference for result in shown if result.difference is not None), None)
    bench.observe(match=difference is None, sha256=digest.hexdigest()[:16])
    bench.observe(answered_by=sorted({_version(result.reply) for result in shown} - {""}))
    if difference is not None:
        bench.observe(first_mismatch=difference)


def _version(reply: Reply) -> str:
    """Version of the model that answered, from the JSON part at the front of a response."""
    if not isinstance(reply, Answer):
        return ""
    try:
        front, _ = json.JSONDecoder().raw_decode(reply.body[:_HEADER_BYTES].decode("latin-1"))
        return str(front["model_version"])
    except (ValueError, KeyError, TypeError):
        return ""


def first_mismatch(outputs: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> str | None:
    """Say where outputs differ from what was expected, element by element (NaN is equal to NaN), or None.

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
            differs = differs & ~((found != found) & (wanted != wanted))
        if bool(numpy.any(differs)):
            where = tuple(int(i) for i in numpy.argwhere(differs)[0])
            wrong = int(numpy.count_nonzero(differs))
            return (
                f"{name}{list(where)} is {found[where]!r}, expected {wanted[where]!r} ({wrong} of {found.size} differ)"
            )
    return None
