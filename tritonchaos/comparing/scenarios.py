"""Says whether two runs were of the same scenario: their targets may differ, nothing else."""

from __future__ import annotations

import difflib
import hashlib
import json
from typing import Final

import yaml

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import JsonValue
from tritonchaos.scenario.yaml_source import read_yaml

# Where a scenario runs is what is compared; what it is about and what is known of it change nothing that happens.
_LEFT_OUT: Final = frozenset({"target", "about", "known"})


def scenario_hash(text: str) -> str:
    """Return the hash of what a scenario does: its values without comments, layout and target.

    A text that cannot be read counts as it is.
    """
    plain = json.dumps(_values(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def is_same(base: str, candidate: str) -> bool:
    """Say whether two scenario files do the same."""
    return scenario_hash(base) == scenario_hash(candidate)


def differences(base: str, candidate: str) -> str:
    """Return the unified diff of what two scenario files do, both laid out in the same way."""
    before, after = (_laid_out(text).splitlines() for text in (base, candidate))
    lines = difflib.unified_diff(before, after, "base/scenario.yaml", "candidate/scenario.yaml", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _values(text: str) -> JsonValue:
    try:
        value = read_yaml(text, "scenario.yaml").value
    except ScenarioError:
        return text
    return {key: item for key, item in value.items() if key not in _LEFT_OUT} if isinstance(value, dict) else value


def _laid_out(text: str) -> str:
    value = _values(text)
    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
