"""The recipe that repro.py follows: server, models, steps, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tritonchaos.errors import UsageError
from tritonchaos.observations import Probe
from tritonchaos.redaction import Redactor
from tritonchaos.reproducing.claims import claim_of
from tritonchaos.reproducing.completing import config_text, finished_block, finished_tracks, sends_files
from tritonchaos.reproducing.course import Part, course, flat
from tritonchaos.reproducing.differences import DONE, as_done, label_of
from tritonchaos.reproducing.docker_run import container_differences
from tritonchaos.reproducing.model_files import ModelFiles, Wishes, gather
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.reproducing.shrinking import blocks, models_needed, most_loads, shrink
from tritonchaos.reproducing.together import Groups
from tritonchaos.reproducing.tracks import tracks_beside, waits_for_numbers
from tritonchaos.verdict import Finding

FORMAT_VERSION: Final = 1
_SIGNALS: Final = frozenset({"signal", "pause", "unpause"})
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
    scenario = recorded.schedule()
    told = course(history.events, recorded.edits, Groups(scenario), numbered=waits_for_numbers(scenario))
    claim = _per_cycle(claim_of(finding, history), finding, told.parts)
    notes = container_differences(recorded)
    parts = _possible(shrink(told.parts, finding, claim, history), finding, claim, notes)
    configs = {m: config_text(recorded, s, m) for m, s in parts[0].before.items()}
    tracks = {phase: tracks_beside(scenario, phase, told, notes) for phase in {part.phase: 0 for part in parts}}
    in_tracks = [str(s["model"]) for ts in tracks.values() for t in ts for s in flat(t["each"]) if s.get("model")]
    needed = models_needed(parts, configs, in_tracks)
    start = {model: state for model, state in parts[0].before.items() if model in needed}
    made = [_probed(finished_block(recorded, block, needed), claim) for block in blocks(parts)]
    beside = {phase: finished_tracks(recorded, one, needed) for phase, one in tracks.items() if one}
    check_compared(claim, made, beside)
    files = gather(recorded, _used_states(start, made, beside), redactor, wishes)
    notes += files.differences()
    recipe = {
        "finding": _told(finding),
        "claim": claim,
        "server": server_settings(recorded, finding, redactor),
        "variables": sorted(secret_values(recorded)),
        "models": start,
        "sends_files": sends_files(recorded),
        "blocks": made,
        "beside": beside,
        "probes": claim["by"] == "inconsistent" or any(True for _ in history.of(Probe)),
        "differences": notes,
        "sample_count": history.facts.sample_count,
        "settle_s": _settle_s(recorded),
        "shown": _shown(claim, history.facts.uses_gpu),
        "planted": any(v.startswith("planted") and m in needed for m, v in history.facts.variants.items())
        or bool(files.stand_ins),
        "twin": _twin(start, made, beside, files, claim),
        "build": files.build,
        "missing": files.missing,
        "empty_folders": files.empty_folders,
    }
    return redactor.plain(recipe, "repro.py"), files, parts


def _possible(parts: Sequence[Part], finding: Finding, claim: Mapping[str, Any], notes: list[str]) -> list[Part]:
    """Write the steps as repro.py can do them.

    Raises:
        UsageError: The step of the finding itself is none of them.
    """
    name = str(claim.get("step", "")).partition(" ")[0]
    if name and name not in DONE:
        raise UsageError(
            f"the finding {finding.id} is of the step {claim['step']}, which a bundle cannot do",
            hint="choose another one with --finding, or hand on the scenario and the run directory",
        )
    known: dict[int, Part] = {}
    for part in parts:  # a part that is tried again stays the same one
        if id(part) not in known:
            known[id(part)] = replace(part, steps=as_done(part.steps, notes))
    return [known[id(part)] for part in parts]


def _probed(block: dict[str, Any], claim: Mapping[str, Any]) -> dict[str, Any]:
    """Let the server be asked after an inference too, where the finding is that it was answered at all."""
    if claim["by"] != "inconsistent":
        return block
    wanted = [step for step in block["each"] if step["do"] == "infer" and label_of(step) == claim["step"]]
    return {**block, "each": [{**step, "probe": True} if step in wanted else step for step in block["each"]]}


def check_compared(
    claim: Mapping[str, Any], made: Sequence[Mapping[str, Any]], beside: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Refuse a wrong output that repro.py would not see as wrong.

    Raises:
        UsageError: Nothing says what the outputs must be but the run's own files.
    """
    if claim.get("kind") != "outputs":
        return
    lists = [*(block["each"] for block in made), *(track["each"] for one in beside.values() for track in one)]
    steps = [step for each in lists for step in flat(each) if label_of(step) == claim["step"]]
    if steps and not any(step.get("equal") for step in steps):
        raise UsageError(
            f"what {claim['step']} must answer is known for models of our templates only",
            hint="choose another finding with --finding, or hand on the scenario, its .npz files and the run directory",
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


def _used_states(
    start: Mapping[str, str],
    made: Sequence[Mapping[str, Any]],
    beside: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for model, state in start.items():
        used.setdefault(state, set()).add(model)
    for step in _with_state(made, beside):
        if step["do"] in ("use", "load"):
            used.setdefault(step["state"], set()).add(step["model"])
    return used


def _with_state(
    made: Sequence[Mapping[str, Any]], beside: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Steps of blocks and tracks that bring about a state of files, or send files of one."""
    tracks = [track for one in beside.values() for track in one]
    return [
        step for each in (*made, *tracks) for step in flat(each["each"]) if "state" in step and step["do"] != "wait_for"
    ]


def _twin(
    start: Mapping[str, str],
    made: Sequence[Mapping[str, Any]],
    beside: Mapping[str, Sequence[Mapping[str, Any]]],
    files: ModelFiles,
    claim: Mapping[str, Any],
) -> dict[str, Any]:
    """How the run is done without the defect's cause: without plants, else without edits, else without signals."""
    uses = _with_state(made, beside)
    edited = {step["state"]: start[step["model"]] for step in uses if step["state"] != start.get(step["model"])}
    is_edited = bool(edited) or any("config" in step for step in uses)
    # What keeps a server from stopping may be either, so both are taken away.
    if files.twins and not (is_edited and claim["by"] == "will_not_stop"):
        return {"states": files.twins, "loads_succeed": False, "without": []}
    if is_edited:
        states = {state: files.twins.get(first, first) for state, first in edited.items()}
        return {"states": {**files.twins, **states}, "loads_succeed": True, "without": []}
    signals = {step["do"] for block in made for step in flat(block["each"])} & _SIGNALS
    return {"states": {}, "loads_succeed": False, "without": sorted(signals)} if signals else {}


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
