"""Joins the parts of `program` into one file, with the recipe in front."""

from __future__ import annotations

import ast
import pprint
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).resolve().parent / "program"
_PARTS: Final = (
    "calls",
    "gpu",
    "readings",
    "server",
    "building",
    "inference",
    "expecting",
    "files",
    "steps",
    "rounds",
    "beside",
    "sizes",
    "slowness",
    "judging",
    "main",
)
_PACKAGE: Final = "tritonchaos."
_WIDTH: Final = 116


def assemble(head: str, recipe: Mapping[str, Any]) -> str:
    """Make the text of repro.py.

    Args:
        head: Its docstring: what it shows, and how to run it.
        recipe: What is done and what was found, as plain values.
    """
    sources = {name: (_FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in _PARTS}
    imports = sorted({line for source in sources.values() for line in _imports(source)}, key=_order)
    bodies = [_titled(source) for source in sources.values()]
    quoted = head.replace("\\", "\\\\").replace('"""', "'''")
    top = ["#!/usr/bin/env python3", f'"""{quoted}"""', "", "from __future__ import annotations", "", *imports]
    told = pprint.pformat(dict(recipe), width=_WIDTH, sort_dicts=False)
    return "\n".join([*top, "", f"RECIPE = {told}", "", "", *bodies])


def _imports(source: str) -> Iterator[str]:
    """Yield the imports of a part that are not of another part."""
    for node in ast.parse(source).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if is_import and module != "__future__" and not (module or "").startswith(_PACKAGE):
            yield ast.unparse(node)


def _order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line


def _titled(source: str) -> str:
    """The body of a part below its docstring as a heading, word for word."""
    tree = ast.parse(source)
    title = ast.get_docstring(tree) or ""
    first = next(node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    start = min([first.lineno, *(node.lineno for node in getattr(first, "decorator_list", []))])
    lines = source.splitlines()
    while lines[start - 2].startswith("#"):
        start -= 1
    heading = f"# --- {title.splitlines()[0].rstrip('.')} "
    return "\n".join([heading + "-" * max(3, 100 - len(heading)), "", *_without_marks(lines[start - 1 :])]) + "\n\n"


def _without_marks(lines: list[str]) -> list[str]:
    """Take out the marks for our own linters."""
    marks = ("  # noqa", "  # fmt:", "  # type:")
    return [line[: min([at for mark in marks if (at := line.find(mark)) >= 0], default=len(line))] for line in lines]
