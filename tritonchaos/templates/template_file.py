"""The file template.yaml of a model template: its records, its parameters, and `${parameter}` in its files."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tritonchaos.errors import TemplateError
from tritonchaos.templates.plants import read_plants
from tritonchaos.templates.tensors import DATATYPES, config_datatype
from tritonchaos.units import parse_bytes

ParameterType = Literal["datatype", "dims", "int", "bytes", "text", "plants"]
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_RENDERED: Final = (".pbtxt", ".json")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorEntry(_Record):
    """An input or output; `datatype` and `dims` may be `${parameter}`."""

    name: str = Field(pattern=r"^[^\s\"\\]+$")
    datatype: str
    dims: str | list[int]
    expected: str | None = None


class ParameterEntry(_Record):
    """A parameter that a scenario may set; `only` names the variants in which it has an effect (empty: all)."""

    type: ParameterType
    default: Any
    about: str = ""
    only: tuple[str, ...] = ()


class VariantEntry(_Record):
    """One way of serving the template.

    Attributes:
        needs: "gpu", "c_compiler" or "server_backend:NAME".
        build: Script that makes `file`, the model file in version directory 1 (see `workers/build_model.py`).
        native: Folder of our C sources that make the backend.
        unless_backend: Never taken unasked where the server brings this backend, for which it is a stand-in.
        only_by_name: Never taken unasked.
    """

    backend: str
    needs: tuple[str, ...] = ()
    build: str | None = None
    file: str | None = None
    native: Literal["planted"] | None = None
    unless_backend: str | None = None
    only_by_name: bool = False


class TemplateFile(_Record):
    """The content of template.yaml; `variants` are in order of preference."""

    template: str
    about: str = ""
    inputs: list[TensorEntry] = Field(min_length=1)
    outputs: list[TensorEntry] = Field(min_length=1)
    parameters: dict[str, ParameterEntry] = {}
    variants: dict[str, VariantEntry] = Field(min_length=1)


def read_template_file(path: Path) -> TemplateFile:
    """Read and validate a template.yaml.

    Raises:
        TemplateError: It cannot be read or does not have the form; the message names the file and the place in it.
    """
    try:
        read = TemplateFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TemplateError(f"cannot read {path}: {error}") from error
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise TemplateError(f"{path}: " + "; ".join(faults)) from error
    if read.template != path.parent.name:
        raise TemplateError(
            f"{path}: found template {read.template!r}, expected its folder's name {path.parent.name!r}"
        )
    return read


def nearest(name: str, names: Collection[str], what: str) -> str:
    """Say which name was probably meant, and which there are, for a hint."""
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}{what}: {', '.join(names) if names else 'none'}"


# --- parameters ----------------------------------------------------------------------------------


def _datatype(value: Any) -> str:
    if value not in DATATYPES:
        raise ValueError(f"found {value!r}, expected a datatype; " + nearest(str(value), DATATYPES, "datatypes"))
    return str(value)


def _dims(value: Any) -> list[int]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"found {value!r}, expected dims such as [3, -1]")
    for dim in value:
        if isinstance(dim, bool) or not isinstance(dim, int) or (dim < 1 and dim != -1):
            raise ValueError(f"found {dim!r} in the dims {value!r}, expected a positive size or -1")
    return list(value)


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"found {value!r}, expected a whole number that is not negative")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {value!r}, expected a text")
    return value


_READERS: Final[Mapping[ParameterType, Callable[[Any], Any]]] = {
    "datatype": _datatype,
    "dims": _dims,
    "int": _int,
    "bytes": parse_bytes,
    "text": _text,
    "plants": read_plants,
}


def read_parameters(read: TemplateFile, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters of a scenario and fill in the defaults.

    Raises:
        TemplateError: A parameter that the template does not have, or a value of another type.
    """
    for name in given:
        if name not in read.parameters:
            raise TemplateError(
                f"the model template {read.template!r} has no parameter {name!r}",
                hint=nearest(name, read.parameters, "its parameters"),
            )
    values: dict[str, Any] = {}
    for name, entry in read.parameters.items():
        try:
            values[name] = _READERS[entry.type](given.get(name, entry.default))
        except ValueError as error:
            raise TemplateError(f"model template {read.template!r}, parameter {name!r}: {error}") from error
    return values


def parameters_without_effect(read: TemplateFile, given: Mapping[str, Any], variant: str) -> list[str]:
    """Name the parameters that were set to something but do nothing in a variant."""
    values = read_parameters(read, given)
    defaults = read_parameters(read, {})
    return [
        name
        for name, entry in read.parameters.items()
        if entry.only and variant not in entry.only and values[name] != defaults[name]
    ]


# --- ${parameter} --------------------------------------------------------------------------------


def resolve(entry: str | list[int], values: Mapping[str, Any], where: str) -> Any:
    """Give what a field of template.yaml stands for: itself, or the value of the `${parameter}` it names.

    Raises:
        TemplateError: There is no such parameter.
    """
    match = _PLACEHOLDER.fullmatch(entry) if isinstance(entry, str) else None
    return entry if match is None else _look_up(match[1], values, where)


def render(text: str, file: Path, read: TemplateFile, values: Mapping[str, Any]) -> str:
    """Put parameters into a file, spelled as its kind of file spells them.

    In config.pbtxt a datatype is "TYPE_FP32", in JSON "FP32"; dims are a list, sizes are bytes, a text is escaped,
    plants are JSON in a text.

    Raises:
        TemplateError: The file names a parameter that the template does not have.
    """

    def spell(match: re.Match[str]) -> str:
        value = _look_up(match[1], values, str(file))
        entry = read.parameters.get(match[1])
        if entry is not None and entry.type == "datatype":
            return config_datatype(value) if file.suffix == ".pbtxt" else str(value)
        if entry is not None and entry.type == "plants":
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        # The quotes belong to the file, so that it stays readable with its placeholders.
        return json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else json.dumps(value)

    return _PLACEHOLDER.sub(spell, text)


def is_rendered(file: Path) -> bool:
    """Tell whether `${parameter}` is replaced in a file; all others are served as they are."""
    return file.suffix in _RENDERED


def _look_up(name: str, values: Mapping[str, Any], where: str) -> Any:
    if name not in values:
        raise TemplateError(f"{where}: there is no parameter {name!r}", hint=nearest(name, values, "parameters"))
    return values[name]
