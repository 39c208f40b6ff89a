"""A YAML text read safely, with the line and column of every key and value, and errors that point at them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import JsonValue
from tritonchaos.scenario.problems import Place, Problem, YamlPath, scenario_error, shortened

MAX_BYTES: Final = 1024**2
# Counted with every alias written out, so that a few lines of nested aliases cannot become gigabytes.
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 64

_PREFIX: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z|0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z")
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML text as plain values, with the place of each.

    Attributes:
        source: Name of the file, for messages.
        problems: What was already seen to be wrong while reading; reading went on.
    """

    source: str
    text: str
    value: JsonValue
    places: Mapping[YamlPath, Place]
    problems: tuple[Problem, ...] = ()

    def at(self, path: YamlPath) -> JsonValue:
        """Return the value at a path, or None where there is none."""
        value = self.value
        for part in path:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def error(self, problems: Iterable[Problem]) -> ScenarioError:
        """Put problems into one error, each with its place."""
        return scenario_error(self.source, self.places, problems)


def decode(content: bytes, source: str) -> str:
    """Decode the bytes of a file.

    Raises:
        ScenarioError: Not UTF-8, or more than 1 MiB.
    """
    if len(content) > MAX_BYTES:
        raise ScenarioError(f"{source}:1:1: (whole file): found {len(content)} bytes, expected at most {MAX_BYTES}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        raise ScenarioError(
            f"{source}:{line}:{column}: (whole file): found byte 0x{content[error.start]:02x}, expected UTF-8 text",
            hint="save the file as UTF-8",
        ) from None


def read_yaml(text: str, source: str) -> Document:
    """Read a YAML text; duplicate keys, foreign tags and other oddities are kept as problems of the document.

    Args:
        source: Name of the file, for messages.

    Raises:
        ScenarioError: Not YAML, empty, more than one document, too large, or nested too deeply.
    """
    if len(text) > MAX_BYTES:
        raise ScenarioError(f"{source}:1:1: (whole file): found {len(text)} characters, expected at most {MAX_BYTES}")
    reading = _Reading()
    try:
        node = _compose(text)
        if node is None:
            raise _Unreadable("an empty document", "a scenario", None)
        value = reading.value(node, (), node, 0)
    except _Unreadable as unreadable:
        line, column = unreadable.line_and_column()
        raise ScenarioError(
            f"{source}:{line}:{column}: (YAML): found {unreadable.found}, expected {unreadable.expected}",
            hint=unreadable.hint,
        ) from None
    return Document(source, text, value, reading.places, tuple(reading.problems))


class _Unreadable(Exception):
    def __init__(self, found: str, expected: str, mark: yaml.Mark | None, hint: str = "") -> None:
        self.found, self.expected, self.hint = found, expected, hint
        self.mark = mark

    def line_and_column(self) -> tuple[int, int]:
        return (1, 1) if self.mark is None else (self.mark.line + 1, self.mark.column + 1)


class _Loader(yaml.SafeLoader):
    """Composes nodes only, and stops when there are too many or they are nested too deeply."""

    nodes = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        self.depth += 1
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            raise _too_large(self.depth, self.get_mark())
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def _too_large(depth: int, mark: yaml.Mark | None) -> _Unreadable:
    if depth > MAX_DEPTH:
        return _Unreadable(f"more than {MAX_DEPTH} levels of nesting", "a flatter document", mark)
    return _Unreadable(f"more than {MAX_NODES} values, aliases written out", "a smaller document", mark)


def _compose(text: str) -> yaml.Node | None:
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node: yaml.Node | None = loader.get_single_node()
        return node
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        mark = yaml.Mark("", 0, before.count("\n"), error.position - (before.rfind("\n") + 1), None, 0)
        raise _Unreadable(f"character {error.character!r}", "printable text", mark) from None
    except (ValueError, OverflowError):  # an escape such as "\U00110000" is beyond Unicode
        raise _Unreadable("an impossible escape", "YAML", loader.get_mark() if loader else None) from None
    finally:
        if loader is not None:
            loader.dispose()


def _syntax(error: yaml.MarkedYAMLError) -> _Unreadable:
    mark = error.problem_mark or error.context_mark
    said = f"{error.problem or ''} {error.context or ''}".strip()
    if "found another document" in said:
        return _Unreadable("a second document", "one", mark, "remove the line ---")
    if "\\t" in said:
        return _Unreadable("a tab", "spaces", mark, "indent with spaces")
    return _Unreadable(f"a mistake: {shortened(said)}", "YAML", mark, "quote texts that contain : # { [ * or &")


class _Reading:
    """Turns nodes into plain values and keeps their places."""

    def __init__(self) -> None:
        self.places: dict[YamlPath, Place] = {}
        self.problems: list[Problem] = []
        self._visited = 0

    def value(self, node: yaml.Node, path: YamlPath, key: yaml.Node, depth: int) -> JsonValue:
        self._visited += 1
        if self._visited > MAX_NODES or depth > MAX_DEPTH:
            raise _too_large(depth, node.start_mark)
        self.places[path] = Place(*_start(node), *_start(key))
        if isinstance(node, yaml.MappingNode) and node.tag == _PREFIX + "map":
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == _PREFIX + "seq":
            return [self.value(item, (*path, i), item, depth + 1) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        return self._refuse(path, f"the tag {node.tag.replace(_PREFIX, '!!')}", "plain YAML without tags")

    def _mapping(self, node: yaml.MappingNode, path: YamlPath, depth: int) -> dict[str, JsonValue]:
        mapping: dict[str, JsonValue] = {}
        for key, item in self._pairs(node, path):
            where = (*path, key.value)
            if key.value in mapping:
                self._refuse_duplicate(where, key)
            else:
                mapping[key.value] = self.value(item, where, key, depth + 1)
        return mapping

    def _pairs(self, node: yaml.MappingNode, path: YamlPath) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse_key(key, path, "a key that is a list or mapping")
            elif key.tag == _PREFIX + "merge":
                self._refuse_key(
                    key, path, "the merge key <<", "write the keys out; an alias for a whole value is fine"
                )
            elif not _is_encodable(key.value):
                self._refuse_key(key, path, "a key with half a character")
            elif key.tag != _PREFIX + "str" and not (key.style is None and key.value.isalpha()):
                self._refuse_key(key, path, f"the key {shortened(key.value)}", "quote it")
            else:
                yield key, item

    def _refuse_key(self, key: yaml.Node, path: YamlPath, found: str, hint: str = "") -> None:
        self.problems.append(Problem(path, found, "a name as key", hint, line_and_column=_start(key)))

    def _refuse_duplicate(self, path: YamlPath, key: yaml.ScalarNode) -> None:
        expected = f"each key once (it is in line {self.places[path].key_line} already)"
        self.problems.append(Problem(path, "the key a second time", expected, line_and_column=_start(key)))

    def _scalar(self, node: yaml.ScalarNode, path: YamlPath) -> JsonValue:
        kind, text = node.tag.removeprefix(_PREFIX), node.value
        if kind == "str":
            return text if _is_encodable(text) else self._refuse(path, "half a character", "UTF-8 text")
        if kind == "null":
            return None
        if kind == "bool" and text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if kind == "int" and _INT.match(text):
            number = int(text[:40], 0)
            is_stored = abs(number) < 2**63
            return number if is_stored else self._refuse(path, shortened(text), "a whole number of at most 64 bits")
        if kind == "float" and _FLOAT.match(text):
            real = float(text)
            return real if abs(real) < 1e300 else self._refuse(path, shortened(text), "a number below 1e300")
        return self._refuse(path, f"the tag !!{kind}", "plain YAML without tags")

    def _refuse(self, path: YamlPath, found: str, expected: str, hint: str = "") -> JsonValue:
        self.problems.append(Problem(path, found, expected, hint))
        return None


def _start(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """YAML 1.1 as people expect it: 1:30 and 2026-01-01 are texts, 010 is one too, and 1e3 is a number."""
    kept: dict[str, list[tuple[str, Any]]] = {}
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items():
        left_out = {_PREFIX + "int", _PREFIX + "float", _PREFIX + "timestamp"}
        kept[first] = [(tag, pattern) for tag, pattern in resolvers if tag not in left_out]
    for first in "-+.0123456789":
        kept.setdefault(first, []).extend([(_PREFIX + "int", _INT), (_PREFIX + "float", _FLOAT)])
    return kept


_Loader.yaml_implicit_resolvers = _plain_resolvers()
