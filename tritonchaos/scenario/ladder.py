"""The reclaim ladder: steps that give memory back one after the other, so that what returns it says who held it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tritonchaos.observations import JsonValue


def ladder_steps(models: Sequence[str], all_models: Collection[str]) -> list[JsonValue]:
    """Write the steps of a phase's `ladder`, as they would stand in a scenario file.

    A good load lets the next instance take over what a failed one has left; with no model loaded only backends and the
    process hold anything; malloc_trim gives back what is free and only kept; the process's end gives back the rest.

    Args:
        models: To be put back as they were and loaded once more.
        all_models: Of the scenario.
    """
    steps: list[JsonValue] = [{"rung": "start"}]
    for model in models:
        # At once after a load, an unload can crash Triton 2.51.
        steps += [{"restore": model}, {"load": model}, {"wait": "20ms"}, {"unload": model}]
    steps += [{"rung": "good_load"}]
    steps += [{"unload": {"model": model, "expect": "any"}} for model in sorted(all_models)]
    steps += [{"rung": "unload_all"}, "trim", "stop_server", {"rung": "exit"}]
    return steps
