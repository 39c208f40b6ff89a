"""The ModelConfig message class that tritonclient ships, and what is asked of protobuf descriptors."""

from __future__ import annotations

import importlib.util
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tritonchaos.errors import ConfigTextError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

# FieldDescriptor.CPPTYPE_*, which protobuf may not renumber.
_INTEGERS: Final = {1: (32, True), 2: (64, True), 3: (32, False), 4: (64, False)}
_CPPTYPE_DOUBLE: Final = 5
_CPPTYPE_FLOAT: Final = 6
_CPPTYPE_BOOL: Final = 7
_CPPTYPE_ENUM: Final = 8
_CPPTYPE_MESSAGE: Final = 10
_TYPE_BYTES: Final = 12
_LABEL_REPEATED: Final = 3


@lru_cache(maxsize=1)
def model_config_class() -> type[Message]:
    """Load `inference.ModelConfig` from tritonclient's `model_config_pb2.py` by its file path.

    Importing it through `tritonclient.grpc` would need grpcio and take several times longer.

    Raises:
        ConfigTextError: tritonclient is not installed, or its protobuf code does not fit the installed protobuf.
    """
    package = importlib.util.find_spec("tritonclient")
    folders = list(package.submodule_search_locations or ()) if package else []
    for folder in folders:
        file = Path(folder) / "grpc" / "model_config_pb2.py"
        if file.is_file():
            return _load(file)
    raise ConfigTextError(
        "tritonclient's model_config_pb2.py was not found, which describes config.pbtxt",
        hint='install it: pip install "tritonclient[http]"',
    )


def _load(file: Path) -> type[Message]:
    spec = importlib.util.spec_from_file_location("tritonchaos_model_config_pb2", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigTextError(
            f"tritonclient's model_config_pb2.py cannot be loaded: {error}",
            hint="install versions of tritonclient and protobuf that fit: pip install -U tritonclient protobuf",
        ) from error
    found: type[Message] = module.ModelConfig
    return found


def model_config_descriptor() -> Descriptor:
    """Return the descriptor of `inference.ModelConfig`."""
    return cast("Descriptor", model_config_class().DESCRIPTOR)


def owner_class(field: FieldDescriptor) -> type[Message]:
    """Return the Python class of the message that a field belongs to."""
    from google.protobuf.message_factory import GetMessageClass

    assert field.containing_type is not None
    return GetMessageClass(field.containing_type)


def is_map(field: FieldDescriptor) -> bool:
    """The field is a map such as `parameters`."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_repeated(field: FieldDescriptor) -> bool:
    """The field holds any number of values; true of maps as well."""
    # protobuf 6.31 brought `is_repeated` and announced the end of `label`.
    any_field: Any = field
    stated = getattr(any_field, "is_repeated", None)
    return bool(stated) if stated is not None else any_field.label == _LABEL_REPEATED


def is_message(field: FieldDescriptor) -> bool:
    """One value of the field is a message."""
    return field.cpp_type == _CPPTYPE_MESSAGE


def is_enum(field: FieldDescriptor) -> bool:
    """One value of the field is an enum value, written by name."""
    return field.cpp_type == _CPPTYPE_ENUM


def is_bool(field: FieldDescriptor) -> bool:
    """One value of the field is `true` or `false`."""
    return field.cpp_type == _CPPTYPE_BOOL


def is_float(field: FieldDescriptor) -> bool:
    """One value of the field is a float or double."""
    return field.cpp_type in (_CPPTYPE_FLOAT, _CPPTYPE_DOUBLE)


def is_bytes(field: FieldDescriptor) -> bool:
    """One value of the field is a string of bytes, not of characters."""
    return field.type == _TYPE_BYTES


def integer_range(field: FieldDescriptor) -> tuple[int, int] | None:
    """Smallest and largest value of an integer field; None for other fields."""
    if field.cpp_type not in _INTEGERS:
        return None
    bits, signed = _INTEGERS[field.cpp_type]
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def map_fields(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Key field and value field of a map."""
    assert field.message_type is not None
    entry = field.message_type.fields_by_name
    return entry["key"], entry["value"]


def rivals(field: FieldDescriptor) -> tuple[str, ...]:
    """Names of the other members of the field's oneof: at most one of them all may be set."""
    oneof = field.containing_oneof
    return tuple(member.name for member in oneof.fields if member.name != field.name) if oneof is not None else ()


def nearest(name: str, names: list[str]) -> str:
    """Say which of the names come nearest to one that does not exist, or list them where none does.

    A name that is contained in another comes first, so that "FP32" finds "TYPE_FP32".
    """
    containing = [known for known in names if len(name) > 2 and name.lower() in known.lower()]
    lowered = {known.lower(): known for known in names}
    close = [lowered[match] for match in get_close_matches(name.lower(), list(lowered), n=4, cutoff=0.6)]
    found = list(dict.fromkeys(containing + close))[:4]
    return f"nearest: {', '.join(found)}" if found else f"known: {', '.join(names)}"


def field_named(descriptor: Descriptor, name: str, shown: str) -> FieldDescriptor:
    """Look a field up by name.

    Args:
        shown: The whole path, for the error message.

    Raises:
        ConfigTextError: The message has no such field; the nearest names are given.
    """
    field = descriptor.fields_by_name.get(name)
    if field is None:
        raise ConfigTextError(
            f"{shown}: {descriptor.name} has no field {name!r}; {nearest(name, list(descriptor.fields_by_name))}",
            hint="field names are those of Triton's model_config.proto",
        )
    return field
