"""Single values of a scenario file: names that are safe to use, and types shared by its records."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, StrictInt, StrictStr, WithJsonSchema

from tritonchaos.observations import JsonValue
from tritonchaos.scenario.entries import CheckEntry, Entry, TargetEntry
from tritonchaos.scenario.problems import shown
from tritonchaos.units import parse_bytes
from tritonchaos.verdict import KINDS

UNLIMITED: Final = -1

_SET_BY_US: Final = {
    "model-repository": "a run has a model repository of its own, made from `models` or --model-repository",
    "model-control-mode": "`mode` of `server` sets it",
    "id": "by it a run knows its server",
    "log-file": "what the server says goes into server.log of the run directory, which checks read",
}
_MODEL_NAME_LENGTH: Final = 200
_NAME_LENGTH: Final = 100


def _model_name(name: str) -> str:
    """A model name is a folder below the model repository and can never lead out of it."""
    # Space and ? end a path in HTTP, and Triton (seen on 2.51) decodes no %20: such a model cannot be asked for.
    wrong = any(part in name for part in ("/", "\\", "..", " ", "?")) or name.startswith(".")
    if wrong or not name or not name.isprintable() or len(name.encode()) > _MODEL_NAME_LENGTH:
        unlike = "no / \\ .. ? space or control character, no dot in front"
        raise ValueError(f"found {shown(name)}, expected a model name: at most {_MODEL_NAME_LENGTH} bytes, {unlike}")
    return name


def _schedule_name(name: str) -> str:
    """Names of phases and tracks are parts of the random key, which is joined with slashes."""
    if not name.strip() or "/" in name or not name.isprintable() or len(name) > _NAME_LENGTH:
        raise ValueError(f"found {shown(name)}, expected a name of at most {_NAME_LENGTH} characters without /")
    return name


def _file_name(name: str) -> str:
    """The scenario's name becomes part of the run folder's name."""
    is_plain = name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    if not is_plain or name.startswith((".", "-")) or len(name) > _NAME_LENGTH:
        expected = f"letters, digits, - _ and . (at most {_NAME_LENGTH}, none of - . in front)"
        raise ValueError(f"found {shown(name)}, expected {expected}")
    return name


def _flag_name(name: str) -> str:
    if name.startswith("-"):
        raise ValueError(f"found {shown(name)}, expected a tritonserver flag without dashes in front")
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError(f"found {shown(name)}, expected a tritonserver flag such as disable-auto-complete-config")
    return name


def _flag_value(value: JsonValue) -> JsonValue:
    if not isinstance(value, str | int | float) or "\0" in str(value):
        raise ValueError(f"found {shown(value)}, expected text, a number, true or false")
    return value


def _flags(flags: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Flags that go together with how the server is asked, watched and stopped."""
    for name, value in flags.items():
        if name in _SET_BY_US:
            raise ValueError(f"found the flag {name}, expected others: {_SET_BY_US[name]}")
        if name.endswith("-port") and not _is_whole(value, 1, 65535):
            raise ValueError(f"found {name}: {shown(value)}, expected a TCP port from 1 to 65535")
        if name == "exit-timeout-secs" and not _is_whole(value, 0, 10**6):
            raise ValueError(f"found {name}: {shown(value)}, expected a whole number of seconds")
        if name == "allow-http" and str(value).lower() in ("false", "0"):
            raise ValueError(f"found {name}: {shown(value)}, expected true: the server is asked over HTTP")
    return flags


def _is_whole(value: JsonValue, least: int, most: int) -> bool:
    text = str(value)
    return text.isascii() and text.isdigit() and least <= int(text) <= most


def _variable_name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"found {shown(name)}, expected the name of an environment variable")
    return name


def _variable_value(value: JsonValue) -> str | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"found {shown(value)}, expected text: put it in quotes")
    if "\0" in value:
        raise ValueError(f"found {shown(value)}, expected text without a NUL, which no environment variable can hold")
    return value


def _version_range(text: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f'found {shown(text)}, expected a version range such as "<2.60" or ">=2.51,<2.60"') from None
    return text


def _finding_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"found {shown(kind)}, expected one of {', '.join(sorted(KINDS))}")
    return kind


def _limit_value(value: JsonValue) -> int:
    if value == "unlimited":
        return UNLIMITED
    try:
        return parse_bytes(value)
    except ValueError:
        raise ValueError(f"found {shown(value)}, expected a number, a size such as 8GiB, or unlimited") from None


def _as_read(value: Any) -> Any:
    """Entries were read before, with errors of their own; None stands for one that is wrong."""
    return value


Count = Annotated[StrictInt, Field(ge=1, le=10**9)]
Steps = tuple[Annotated[Entry, PlainValidator(_as_read), WithJsonSchema({"x-entry": "step"})], ...]
Checks = tuple[Annotated[CheckEntry, PlainValidator(_as_read), WithJsonSchema({"x-entry": "check"})], ...]
Targets = tuple[Annotated[TargetEntry, PlainValidator(_as_read), WithJsonSchema({"x-entry": "target"})], ...]
ScenarioName = Annotated[StrictStr, AfterValidator(_file_name)]
ModelName = Annotated[StrictStr, AfterValidator(_model_name)]
ScheduleName = Annotated[StrictStr, AfterValidator(_schedule_name)]
ModelControlMode = Literal["explicit", "poll", "none"]
# Names of getrlimit(2), without RLIMIT_ in front.
LimitName = Literal[
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "memlock",
    "msgqueue",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "sigpending",
    "stack",
]
LimitValue = Annotated[int, BeforeValidator(_limit_value), WithJsonSchema({"type": ["string", "integer"]})]
FlagName = Annotated[StrictStr, AfterValidator(_flag_name)]
FlagValue = Annotated[
    Any, PlainValidator(_flag_value), WithJsonSchema({"type": ["string", "integer", "number", "boolean"]})
]
Flags = Annotated[dict[FlagName, FlagValue], AfterValidator(_flags)]
VariableName = Annotated[StrictStr, AfterValidator(_variable_name)]
VariableValue = Annotated[
    str | None, BeforeValidator(_variable_value), WithJsonSchema({"type": ["string", "integer", "null"]})
]
VersionRange = Annotated[StrictStr, AfterValidator(_version_range)]
FindingKind = Annotated[
    StrictStr, AfterValidator(_finding_kind), WithJsonSchema({"type": "string", "enum": sorted(KINDS)})
]
MetricName = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_]*(@\S+)?$")]
