"""Load a model over the repository API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tritonchaos.observations import Reply
from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class Load:
    """Load a model, or load it again if it is READY.

    Attributes:
        model: The scenario's name of the model.
        config: Model configuration that overrides config.pbtxt for this load, in the JSON form of ModelConfig.
        files: Files of the model directory to send along as `file:` content, such as ["1/model.py"]; Triton wants
            `config` with them. A target that cannot lay out a model repository sends config and all files of itself.

    Source: Triton model repository extension, "Load".
    """

    name: ClassVar[str] = "load"
    contract: ClassVar[Contract] = Contract.DOCUMENTED
    ways: ClassVar[tuple[str, ...]] = ("http", "grpc")

    model: str
    config: Mapping[str, Any] | None = None
    files: tuple[str, ...] = field(default=())

    def apply(self, bench: Workbench) -> Reply:
        """Send the load request and wait for its answer."""
        repository = bench.repository
        config = None if self.config is None else json.dumps(self.config)
        paths = self.files
        if repository.sends_files:
            config = repository.config_json(self.model) if config is None else config
            paths = self.files or repository.model_files(self.model)
        folder = repository.model_dir(self.model)
        files = {path: (folder / path).read_bytes() for path in paths}
        return bench.asked.load(self.model, bench.deadline_s, config=config, files=files or None)
