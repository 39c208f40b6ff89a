"""What a scenario file says under `expect`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, WithJsonSchema

from tritonchaos.observations import Expectation, JsonValue
from tritonchaos.plugins import Seconds
from tritonchaos.scenario.problems import Problem, YamlPath, nearest, shown
from tritonchaos.scenario.validation import Keys, validate


def _one_or_more(value: JsonValue) -> JsonValue:
    # A tuple, as strict validation takes a list for one only straight from JSON.
    return tuple(value) if isinstance(value, list) else (value,)


def _versions(value: JsonValue) -> JsonValue:
    """Versions are written as numbers or texts; they are texts in Triton."""
    listed = value if isinstance(value, list) else [value]
    return tuple(str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in listed)


def _compiled(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"found {shown(text)}, expected a regular expression: {error}") from None
    return text


PositiveSeconds = Annotated[Seconds, Field(gt=0)]
Regex = Annotated[str, AfterValidator(_compiled), Field(min_length=1)]
HttpStatus = Annotated[int, Field(ge=100, le=599)]
HttpStatuses = Annotated[
    tuple[HttpStatus, ...],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema({"type": ["integer", "array"], "items": {"type": "integer"}}),
]
Version = Annotated[str, Field(pattern=r"^[0-9]+$")]
Versions = Annotated[
    tuple[Version, ...],
    BeforeValidator(_versions),
    WithJsonSchema({"type": ["integer", "string", "array"], "items": {"type": ["integer", "string"]}}),
]
ProcessCount = Annotated[int, Field(ge=0)]


class ExpectFields(BaseModel):
    """What the reply of a step should be; a key that is absent demands nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: HttpStatuses | None = Field(None, description="HTTP status, or a list of those that are accepted.")
    error: Regex | None = Field(None, description="Regular expression, searched in the text of the refusal.")
    within: PositiveSeconds | None = Field(None, description="Longest time the reply may take.")
    state: Mapping[str, Literal["READY", "UNAVAILABLE", "LOADING", "UNLOADING", "ABSENT"]] = Field(
        default_factory=dict, description="Model -> state in the repository index after the step."
    )
    reason: Regex | None = Field(None, description="Regular expression, searched in the index's reason.")
    version: Versions | None = Field(
        None, description="Versions that are READY after the step, all of them; of an inference, that may answer it."
    )
    outputs: Literal["match"] | None = Field(None, description="Every output element equals the expected one.")
    log: Regex | None = Field(None, description="Regular expression that a line logged during the step has.")
    not_log: Regex | None = Field(None, description="Regular expression that no line logged during the step has.")
    processes: Mapping[Literal["server", "stub", "other"], ProcessCount] = Field(
        default_factory=dict,
        description="Role -> number of processes after the step, such as {stub: 1}; looked for up to 4 s.",
    )
    live: bool | None = Field(None, description="What the live endpoint says after the step.")
    ready: bool | None = Field(None, description="What the ready endpoint says after the step.")


_EXPECT: Final = TypeAdapter(ExpectFields)
_KEYS: Final = Keys(tuple(ExpectFields.model_fields))


def read_expectation(raw: JsonValue, path: YamlPath) -> tuple[Expectation, list[Problem]]:
    """Read what stands under `expect`; what cannot be read demands nothing, and has problems."""
    if raw in ("ok", "any"):
        return Expectation(raw), []
    if not isinstance(raw, Mapping) or not raw:
        expected = f"ok, any or a mapping with {', '.join(_KEYS.known)}"
        return Expectation(), [Problem(path, shown(raw), expected, nearest(str(raw), ("ok", "any")))]
    fields, problems = validate(_EXPECT, raw, path, lambda loc: _KEYS)
    if not isinstance(fields, ExpectFields):
        return Expectation(), problems
    given = {name: getattr(fields, name) for name in ExpectFields.model_fields if name != "within"}
    return Expectation(kind="fields", within_s=fields.within, **given), problems
