"""The recipe that repro.py follows: server, models, steps, and what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.redaction import Redactor
from tritonchaos.reproducing.claims import claim_of
from tritonchaos.reproducing.completing import config_text, finished_block, finished_tracks, sends_files
from tritonchaos.reproducing.course import Part, course
from tritonchaos.reproducing.model_files import ModelFiles, Wishes, gather
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.reproducing.shrinking import blocks, models_needed, most_loads, shrink
from tritonchaos.reproducing.tracks import tracks_beside
from tritonchaos.verdict import Finding

FORMAT_VERSION: Final = 1
# Values of these do what the defect may need and tell nothing of anybody.
_HARMLESS: Final = (
    "LD_PRELOAD", "MALLOC_", "CUDA_", "NVIDIA_", "OMP_", "MKL_", "TRITONCHAOS_PLANT", "TORCH_", "TF_", "ORT_", "LC_",
    "LANG", "TZ", "TRITON_", "PYTHONMALLOC", "GLIBC_TUNABLES",
)  # fmt: skip


def make_recipe(
    recorded: Recorded, finding: Finding, redactor: Redactor, wishes: Wishes
) -> tuple[dict[str, Any], ModelFiles, list[Part]]:
    """Make the recipe of a finding and gather the models that it needs.

    Returns:
        The recipe, the models, and the parts of the run that are done again.

    Raises:
        UsageError: repro.py cannot show this finding.
    """
    history = recorded.finished.history
    whole = course(history.events, recorded.edits)
    check_alone(recorded, finding)
    claim = _per_cycle(claim_of(finding, history), finding, whole)
    parts = shrink(whole, finding, claim, history)
    configs = {m: config_text(recorded, s, m) for m, s in parts[0].before.items()}
    phase = finding.position.phase if finding.position is not None else ""
    beside = tracks_beside(recorded, phase)
    needed = models_needed(
        parts, configs, [str(step["model"]) for t in beside for step in t["each"] if "model" in step]
    )
    start = {model: state for model, state in parts[0].before.items() if model in needed}
    made = [finished_block(recorded, block, needed) for block in blocks(parts)]
    files = gather(recorded, _used_states(start, made), redactor, wishes)
    recipe = {
        "finding": _told(finding),
        "claim": claim,
        "server": server_settings(recorded, finding, redactor),
        "variables": sorted(secret_values(recorded)),
        "models": start,
        "sends_files": sends_files(recorded),
        "blocks": made,
        "beside": {phase: finished_tracks(recorded, beside)} if beside else {},
        "sample_count": history.facts.sample_count,
        "settle_s": _settle_s(recorded),
        "shown": _shown(claim, history.facts.uses_gpu),
        "planted": any(v.startswith("planted") and m in needed for m, v in history.facts.variants.items())
        or bool(files.stand_ins),
        "twin": _twin(start, made, files),
        "build": files.build,
        "missing": files.missing,
        "empty_folders": files.empty_folders,
    }
    return redactor.plain(recipe, "repro.py"), files, parts


def check_alone(recorded: Recorded, finding: Finding) -> None:
    """Refuse a finding that is seen beside the main track: repro.py judges one thing after the other.

    Raises:
        UsageError: It is of a track, or its phase has steps that are started together.
    """
    position = finding.position
    phases = recorded.scenario.get("phases") or []
    phase = next((p for p in phases if isinstance(p, Mapping) and position and p.get("phase") == position.phase), {})
    is_together = "together" in json.dumps(phase.get("each") or phase.get("steps") or [], default=str)
    if (position is not None and position.track != "main") or is_together:
        how = "together" if is_together else f"track {position.track}" if position else ""
        raise UsageError(
            f"the finding {finding.id} is of steps that ran at the same time ({how}), which a bundle does not have yet",
            hint="choose another one with --finding, or hand on the scenario and the run directory",
        )


def _per_cycle(claim: dict[str, Any], finding: Finding, whole: Sequence[Part]) -> dict[str, Any]:
    """Write a rate per load as one per cycle, where the cycles repeated their loads."""
    if finding.per != "load" or finding.position is None or claim["by"] != "growth":
        return claim
    rounds = most_loads([part for part in whole if part.phase == finding.position.phase])[1]
    interval = [end * rounds for end in claim["interval_bytes_per_cycle"]]
    rate = claim["bytes_per_cycle"] * rounds
    return {**claim, "bytes_per_cycle": rate, "interval_bytes_per_cycle": interval, "rounds_per_cycle": rounds}


def _told(finding: Finding) -> dict[str, Any]:
    return {"id": finding.id, "kind": finding.kind, "checker": finding.checker, "title": finding.title}


def _shown(claim: Mapping[str, Any], uses_gpu: bool) -> list[str]:
    """Metrics of the table that repro.py prints."""
    usual = ["nvml_device_used_bytes", "nvml_process_used_bytes"] if uses_gpu else ["host_private_bytes"]
    return list(dict.fromkeys([claim["metric"], *usual] if "metric" in claim else usual))


def _settle_s(recorded: Recorded) -> float:
    from tritonchaos.units import parse_seconds

    sample = recorded.scenario.get("sample") or {}
    settle = sample.get("settle") or {} if isinstance(sample, Mapping) else {}
    at_most = settle.get("at_most", 2.0) if isinstance(settle, Mapping) else 2.0
    return float(parse_seconds(at_most))


def _used_states(start: Mapping[str, str], made: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for model, state in start.items():
        used.setdefault(state, set()).add(model)
    for step in (step for block in made for step in block["each"]):
        if "state" in step and step["do"] in ("use", "load"):
            used.setdefault(step["state"], set()).add(step["model"])
    return used


def _twin(start: Mapping[str, str], made: Sequence[Mapping[str, Any]], files: ModelFiles) -> dict[str, Any]:
    """How the run is done without the defect's cause: without plants, else without the edits."""
    if files.twins:
        return {"states": files.twins, "loads_succeed": False}
    uses = [step for block in made for step in block["each"] if "state" in step]
    edited = {step["state"]: start[step["model"]] for step in uses if step["state"] != start.get(step["model"])}
    sent = any("config" in step for step in uses)
    return {"states": edited, "loads_succeed": True} if edited or sent else {}


# --- the server ----------------------------------------------------------------------------------


def server_settings(recorded: Recorded, finding: Finding, redactor: Redactor) -> dict[str, Any]:
    """Flags, environment and limits of the run, with those of the finding's phase laid over."""
    phases = recorded.scenario.get("phases") or []
    here = finding.position.phase if finding.position is not None else None
    phase = next((p for p in phases if isinstance(p, Mapping) and p.get("phase") == here), {})
    layers = [layer for layer in (recorded.scenario.get("server"), phase.get("server")) if isinstance(layer, Mapping)]
    merged: dict[str, Any] = {"flags": {}, "env": {}, "ulimits": {}}
    for layer in layers:
        for name in merged:
            merged[name] |= dict(layer.get(name) or {})
    mode = next((layer["mode"] for layer in reversed(layers) if layer.get("mode")), "explicit")
    return {
        "mode": str(mode),
        "flags": {str(name): _flag(value) for name, value in merged["flags"].items()},
        "env": _environment(merged["env"], redactor),
        "ulimits": {str(name): _limit(value) for name, value in merged["ulimits"].items()},
    }


def _flag(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _limit(value: Any) -> int:
    from tritonchaos.units import parse_bytes

    return -1 if value == "unlimited" else int(parse_bytes(value))


def _environment(asked: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Keep values that are harmless; the others are named only, and taken from the environment of repro.py."""
    kept: dict[str, Any] = {}
    for name, value in asked.items():
        if value is None or str(name).startswith(_HARMLESS):
            kept[str(name)] = None if value is None else str(value)
        else:
            redactor.note("environment value", f"repro.py, variable {name}")
    return kept


def secret_values(recorded: Recorded) -> dict[str, str]:
    """Values of environment variables that the scenario sets and that a bundle must not show, by name."""
    layers = [recorded.scenario.get("server")]
    layers += [p.get("server") for p in recorded.scenario.get("phases") or [] if isinstance(p, Mapping)]
    asked = [layer.get("env") or {} for layer in layers if isinstance(layer, Mapping)]
    pairs = [(str(n), str(v)) for env in asked if isinstance(env, Mapping) for n, v in env.items() if v is not None]
    return {name: value for name, value in pairs if not name.startswith(_HARMLESS)}
