"""A model of the repository, as the scenario file names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StrictStr, model_validator

from tritonchaos.scenario.record import Record


class ModelEntry(Record):
    """A model of the repository, made from a model template, or one of the user's own.

    Attributes:
        template: Name of the model template.
        parameters: What the template lets a scenario set.
        variant: Variant of the template; absent: the first that the server can serve.
        path: Folder of a model of one's own, from the scenario file; it is never written to.
        inputs: Of a model of one's own: zeros, random, or a file (.npz, or .json as in the inference protocol).
        expect_outputs: Of a model of one's own: a file (.npz) with what it must answer, or none.
    """

    template: Annotated[StrictStr, Field(min_length=1)] | None = None
    parameters: Mapping[StrictStr, Any] = Field(default_factory=dict)
    variant: Annotated[StrictStr, Field(min_length=1)] | None = None
    path: Annotated[StrictStr, Field(min_length=1)] | None = None
    inputs: Annotated[StrictStr, Field(min_length=1)] = "random"
    expect_outputs: Annotated[StrictStr, Field(min_length=1)] = "none"

    @model_validator(mode="after")
    def _one_origin(self) -> ModelEntry:
        if (self.template is None) == (self.path is None):
            found = "neither template nor path" if self.path is None else "both template and path"
            raise ValueError(f"found {found}, expected one of them")
        beside = self.model_fields_set & ({"parameters", "variant"} if self.path else {"inputs", "expect_outputs"})
        if beside:
            raise ValueError(f"found {min(beside)} beside {'path' if self.path else 'template'}, expected no such key")
        if self.expect_outputs != "none" and self.inputs == "random":
            raise ValueError("found expect_outputs beside random inputs, expected inputs: zeros or a file of inputs")
        return self
