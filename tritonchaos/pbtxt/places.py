"""Where a field of a config.pbtxt stands."""

from __future__ import annotations

from tritonchaos.errors import ConfigTextError
from tritonchaos.pbtxt.field_path import resolve
from tritonchaos.pbtxt.text import container_of, find


def line_of(text: str, path: str) -> int | None:
    """Return the line, from 1, of the value at a field path, such as `output[0].data_type`.

    Of a field that is not there it is the line where the message begins that it would be in; None where that is not
    there either, or the text cannot be read.
    """
    try:
        hops = resolve(path)
        container = container_of(text, hops)
        if container is None:
            return None
        found = find(text, container, hops[-1])
    except ConfigTextError:
        return None
    offset = (container if found is None else found).start
    return text.count("\n", 0, offset) + 1
