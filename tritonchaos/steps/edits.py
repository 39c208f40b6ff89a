"""Edit the files of a model, and put a model back as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from tritonchaos.plugins import STEPS, Contract, Workbench


def _below_the_model(path: str) -> str:
    if any(part in ("", ".", "..") or "\0" in part for part in path.removesuffix("/").split("/")):
        raise ValueError(f"found {path[:80]!r}, expected a path below the model directory, such as 1/model.py")
    return path


def _version(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ModelPath = Annotated[str, AfterValidator(_below_the_model)]
Version = Annotated[
    str,
    BeforeValidator(_version),
    Field(pattern=r"^(0|[1-9][0-9]{0,17})$"),
    WithJsonSchema({"type": ["integer", "string"]}),
]


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
    path: ModelPath

    def apply(self, bench: Workbench) -> None:
        """Delete it while the model is not loading or unloading."""
        bench.repository.delete_file(self.model, self.path)


@STEPS.register
@dataclass(frozen=True, slots=True)
class PutFile:
    """Put a file into a model directory, in place of the one that is there; restore takes it away again.

    Attributes:
        model: The scenario's name of the model.
        path: Path below the model directory.
        text: Content of the file, as UTF-8.
        source: File to copy (a huge one is linked), looked for beside the scenario file; written `from`.
    """

    name: ClassVar[str] = "put_file"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    path: ModelPath
    text: str | None = None
    source: Annotated[str | None, Field(alias="from", min_length=1)] = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.source is None):
            raise ValueError("found neither or both of `text` and `from`, expected one of them")

    def with_files_from(self, folder: Path) -> PutFile:
        """Look for the file in the folder of the scenario file.

        Raises:
            ValueError: There is no such file.
        """
        if self.source is None:
            return self
        file = folder / self.source
        if not file.is_file():
            raise ValueError(f"found no file at {self.source[:80]!r}, expected one beside the scenario file")
        return replace(self, source=str(file.resolve()))

    def apply(self, bench: Workbench) -> None:
        """Write it aside and rename it into place."""
        content = Path(self.source) if self.source is not None else (self.text or "").encode()
        bench.repository.put_file(self.model, self.path, content)


@STEPS.register
@dataclass(frozen=True, slots=True)
class AddVersion:
    """Add a version to a model: the folder of one that is there, once more under another number.

    Attributes:
        model: The scenario's name of the model.
        version: The new version.
        source: The version that is copied; written `from`.

    Source: Triton model_repository.md, "Model Versions": folders named by numbers are versions.
    """

    name: ClassVar[str] = "add_version"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    model: str
    version: Version
    source: Annotated[Version, Field(alias="from")] = "1"

    def __post_init__(self) -> None:
        if self.version == self.source:
            raise ValueError(f"found version {self.version} copied from itself, expected two numbers")

    def apply(self, bench: Workbench) -> None:
        """Copy it aside and rename it into place."""
        bench.repository.add_version(self.model, self.version, self.source)
