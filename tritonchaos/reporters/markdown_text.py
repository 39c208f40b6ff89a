"""Markdown that shows any text as it is (GitHub Flavored Markdown Spec 0.29): nothing of it becomes markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tritonchaos.summary import printable

_MARKUP: Final = re.compile(r"([\\`*\[\]|~!$])")
# An underscore inside a word is no emphasis.
_EDGE_UNDERSCORE: Final = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# A heading, a list or a rule would begin here.
_BLOCK_START: Final = re.compile(r"^(?:([#+=-])|(\d+)([.)]))")
# On GitHub these reach other people and other issues.
_MENTION: Final = re.compile(r"([@#])(?=\w)")


def plain(text: str) -> str:
    """Print a text on one line, within a paragraph, a heading, a list or a table."""
    line = " ".join(printable(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _MARKUP.sub(r"\\\1", line)
    line = _EDGE_UNDERSCORE.sub(r"\\_", line)
    line = _MENTION.sub(r"\1&#8203;", line)
    return _BLOCK_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", line)


def code(text: str) -> str:
    """Print a text on one line as code, also within a table."""
    line = " ".join(printable(text).split()).replace("|", "\\|")
    fence = "`" * (_longest_run(line) + 1)
    # Spaces keep a backtick at either end apart from the fence; Markdown takes one of them off again.
    return f"{fence} {line} {fence}" if line.startswith("`") or line.endswith("`") else f"{fence}{line}{fence}"


def fenced(lines: Sequence[str]) -> str:
    """Print lines as a block of code."""
    body = [line for text in lines for line in printable(text).split("\n")]
    fence = "`" * max(3, max((_longest_run(line) for line in body), default=0) + 1)
    return "\n".join([f"{fence}text", *body, fence])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Print a table of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
