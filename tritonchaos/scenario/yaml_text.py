"""Plain values written as YAML, such that reading gives the same values again."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tritonchaos.observations import JsonValue
from tritonchaos.scenario.yaml_source import read_yaml


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Our reading takes 1e3 for a number and 1:30 for a text, unlike the dumper, so what looks like a number is tried.
    if re.fullmatch(r"[-+.\w]+", text) and read_yaml(text, "").value != text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
    return dumper.represent_str(text)


_Dumper.add_representer(str, _represent_text)


def yaml_text(raw: JsonValue) -> str:
    """Write plain values (see `Document.value`) as YAML."""
    text: str = yaml.dump(raw, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
