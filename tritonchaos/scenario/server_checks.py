"""What must hold between how the server is started, the models, and the steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tritonchaos.observations import JsonValue
from tritonchaos.scenario.problems import Problem, YamlPath, shown

_STEP_LISTS: Final = ("before", "each", "after", "steps")
_ASKS_FOR_MODELS: Final = ("load", "unload")


def server_problems(raw: Mapping[str, JsonValue]) -> Iterator[Problem]:
    """Check that load and unload are asked only of a server that allows them, and what cannot be beside `fresh`."""
    server = _mapping(raw.get("server"))
    phases = raw.get("phases")
    for number, phase in enumerate(phases if isinstance(phases, list) else []):
        own = _mapping(_mapping(phase).get("server"))
        path: YamlPath = ("phases", number)
        mode = own.get("mode", server.get("mode", "explicit"))
        if mode in ("poll", "none"):
            yield from _refused_loads(phase, path, mode)
        if own.get("fresh", server.get("fresh")) == "cycle" and "meanwhile" in _mapping(phase):
            found = "meanwhile beside fresh: cycle"
            yield Problem((*path, "meanwhile"), found, "no track that a restart of the server cuts off", at_key=True)


def _refused_loads(raw: JsonValue, path: YamlPath, mode: str) -> Iterator[Problem]:
    """Triton answers such calls with an error; a scenario that expects something else than ok may ask."""
    for name, fields, where in _steps(raw, path):
        expect = fields.get("expect", "ok") if isinstance(fields, Mapping) else "ok"
        if name in _ASKS_FOR_MODELS and expect == "ok":
            found = f"{name} of a server with mode: {mode}"
            yield Problem(where, found, "mode: explicit, or an `expect` with the refusal", at_key=True)


def _steps(raw: JsonValue, path: YamlPath) -> Iterator[tuple[str, JsonValue, YamlPath]]:
    """Yield name, fields and place of every step in a phase, at any depth."""
    if isinstance(raw, list):
        for number, item in enumerate(raw):
            if isinstance(item, str) and path[-1] in _STEP_LISTS:
                yield item, None, (*path, number)
            yield from _steps(item, (*path, number))
    elif isinstance(raw, Mapping):
        for key, value in raw.items():
            if len(path) > 1 and path[-2] in _STEP_LISTS:
                yield key, value, (*path, key)
            yield from _steps(value, (*path, key))


def model_problems(raw: Mapping[str, JsonValue], folder: Path) -> Iterator[Problem]:
    """Check that the folders and files that models name are there.

    Args:
        folder: Of the scenario file.
    """
    for name, model in _mapping(raw.get("models")).items():
        for key in ("path", "inputs", "expect_outputs"):
            value = _mapping(model).get(key)
            is_word = key != "path" and value in ("zeros", "random", "none")
            if not isinstance(value, str) or is_word or "\0" in value:
                continue
            place = folder / value
            if not (place.is_dir() if key == "path" else place.is_file()):
                expected = "the folder of a model" if key == "path" else "a file"
                yield Problem(("models", name, key), f"no {expected.split()[1]} at {shown(value)}", expected)


def metric_problems(raw: Mapping[str, JsonValue]) -> Iterator[Problem]:
    """A latency is no memory: `sample.metrics` must not name one."""
    metrics = _mapping(raw.get("sample")).get("metrics")
    for number, metric in enumerate(metrics if isinstance(metrics, list) else []):
        if isinstance(metric, str) and metric.startswith("latency_"):
            expected = "a metric that is read of memory; `check: [latency: {...}]` judges latencies"
            yield Problem(("sample", "metrics", number), f"the latency {shown(metric)}", expected)


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}
