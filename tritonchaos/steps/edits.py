"""Edit the files of a model, and put a model back as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class EditConfig:
    """Set fields of a model's config.pbtxt by field path, such as output[0].data_type.

    Attributes:
        model: The scenario's name of the model.
        set: Field path -> value; null deletes the field. Everything else in the file keeps its bytes.

    Source: Triton model_configuration.md; the fields are those of model_config.proto.
    """

    name: ClassVar[str] = "edit_config"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    set: Mapping[str, Any]

    def apply(self, bench: Workbench) -> None:
        """Replace config.pbtxt atomically."""
        bench.repository.edit_config(self.model, self.set)


@STEPS.register
@dataclass(frozen=True, slots=True)
class Restore:
    """Put a model (or all models) back byte for byte as they were at the start.

    Attributes:
        model: The scenario's name of the model; none: every model.
    """

    name: ClassVar[str] = "restore"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str | None = None

    def apply(self, bench: Workbench) -> None:
        """Write the first snapshot back."""
        bench.repository.restore(self.model)


@STEPS.register
@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Delete a file of a model directory, such as 1/model.py; restore brings it back.

    Attributes:
        model: The scenario's name of the model.
        path: Path below the model directory.
    """

    name: ClassVar[str] = "delete_file"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    path: str

    def apply(self, bench: Workbench) -> None:
        """Delete it while the model is not loading or unloading."""
        bench.repository.delete_file(self.model, self.path)
