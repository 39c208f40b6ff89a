"""The calls that can be made over HTTP and over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tritonchaos.client.inference_encoding import NamedTensor
from tritonchaos.observations import Reply

if TYPE_CHECKING:
    import numpy as np


class ModelCalls(Protocol):
    """Load, unload and inference; see `TritonClient`."""

    def load(
        self, model: str, deadline_s: float, config: str | None = None, files: Mapping[str, bytes] | None = None
    ) -> Reply: ...

    def unload(self, model: str, deadline_s: float, unload_dependents: bool = False) -> Reply: ...

    def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[NamedTensor],
        deadline_s: float,
        version: str = "",
        datatypes: Mapping[str, str] | None = None,
    ) -> tuple[Reply, dict[str, np.ndarray[Any, Any]] | None]: ...
