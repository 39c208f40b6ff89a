"""What is sent with a load request when the server does not read our model repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tritonchaos import pbtxt
from tritonchaos.errors import ConfigTextError

CONFIG_FILE: Final = "config.pbtxt"


def config_json(text: str) -> str:
    """Turn the text of a config.pbtxt into the JSON that the load request's `config` takes.

    A text that is no ModelConfig is returned as it is: it was broken on purpose, and refusing it is the server's part.

    Source: Triton model repository extension, "Load": `config` is a JSON representation of ModelConfig.
    """
    try:
        message = pbtxt.parse(text)
    except ConfigTextError:
        return text
    from google.protobuf import json_format

    return json_format.MessageToJson(message, preserving_proto_field_name=True, indent=None)


def sendable_files(folder: Path) -> tuple[str, ...]:
    """Paths of a model directory's files below it, sorted, but for config.pbtxt, which is sent as `config`."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(path for path in paths if path != CONFIG_FILE))
