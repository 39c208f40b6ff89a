"""HTML in which any text is shown as it is: what is not `Html` already is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from tritonchaos.summary import printable, without_folders


class Html(str):
    """Text that is markup already, made by this module."""

    __slots__ = ()


Child: TypeAlias = str | Iterable["Child"] | None


def shown(text: str) -> str:
    """Make a text of a server or a file fit to be handed on: no folders of this machine, no control characters."""
    return printable(without_folders(text))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """Print an element; an attribute is left out if it is None or False, and `class_` is written class.

    Underscores in other names become hyphens: `aria_label` is aria-label.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def void(name: str, /, **attributes: str | int | float | bool | None) -> Html:
    """Print an element that has no end tag, such as `input`."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>")


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:  # 0 is a value
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(shown(str(value)))}"'


def join(children: Child) -> Html:
    """Print children one after the other."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return Html(html.escape(shown(children)))
    return Html("".join(join(child) for child in children))


def table(caption: str, header: Sequence[Child], rows: Iterable[Sequence[Child]], class_: str = "") -> Html:
    """Print a table that scrolls by itself where it is too wide; the first cell of each row is its heading."""
    head = tag("tr", (tag("th", cell, scope="col") for cell in header))
    body = (
        tag("tr", (tag("th", cell, scope="row") if not at else tag("td", cell) for at, cell in enumerate(row)))
        for row in rows
    )
    parts = (tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag(
        "div", tag("table", *parts), class_=f"scroll {class_}".strip(), tabindex=0, role="group", aria_label=caption
    )


def json_island(name: str, value: Any) -> Html:
    """Print data for the page's own script; it can neither end the element nor begin a comment.

    Source: HTML Living Standard, "Restrictions for contents of script elements": it is enough that no `<` is there.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Html(f'<script type="application/json" id="{name}">{text}</script>')
