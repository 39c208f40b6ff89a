"""Read, edit and damage config.pbtxt, Triton's ModelConfig in protobuf text format."""

from __future__ import annotations

from tritonchaos.pbtxt.damage import DAMAGES, damage
from tritonchaos.pbtxt.message import parse, print_text
from tritonchaos.pbtxt.places import line_of
from tritonchaos.pbtxt.text import edit

__all__ = ["DAMAGES", "damage", "edit", "line_of", "parse", "print_text"]
