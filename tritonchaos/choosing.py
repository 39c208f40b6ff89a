"""Chooses the target that runs a scenario and the variant of each model, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonchaos.errors import TargetUnavailable, TemplateError
from tritonchaos.plugins import TARGETS, Target
from tritonchaos.scenario import Scenario, TargetEntry, build_plugin
from tritonchaos.templates import Machine, ServedModel, find_template


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a scenario will run on.

    Attributes:
        target: Ready to be started.
        skipped: (what, why) for targets and variants that were passed over, in the scenario's order.
        models: Scenario's name -> model to serve.
    """

    target: Target
    skipped: tuple[tuple[str, str], ...]
    models: Mapping[str, ServedModel]

    @property
    def variants(self) -> dict[str, str]:
        """Model -> variant that is served."""
        return {name: model.variant for name, model in self.models.items()}


def choose(scenario: Scenario, template_folders: Sequence[Path] = ()) -> Chosen:
    """Take the first target of the scenario's list that can be used here and can serve its models.

    Args:
        template_folders: Searched for model templates before the shipped ones.

    Raises:
        TargetUnavailable: None can be used; names each with its reason.
        TemplateError: A template does not exist, or a variant that was asked for cannot be served.
    """
    for name in {entry.template for entry in scenario.models.values()}:
        find_template(name, template_folders)  # a template that does not exist is not the target's fault
    skipped: list[tuple[str, str]] = []
    for entry in scenario.target:
        try:
            target = _usable(entry)
            models, passed_over = _serve_models(scenario, target, template_folders)
        except TargetUnavailable as reason:
            skipped.append((entry.name, reason.message))
            continue
        except TemplateError as reason:
            if len(scenario.target) == 1:
                raise
            skipped.append((entry.name, reason.message))
            continue
        return Chosen(target, (*skipped, *passed_over), models)
    raise _nothing_usable(skipped)


def _usable(entry: TargetEntry) -> Target:
    if entry.missing:
        raise TargetUnavailable(entry.missing)
    target: Target = build_plugin(TARGETS, entry.name, dict(entry.fields), f"target {entry.name}")
    target.check()
    return target


def _serve_models(
    scenario: Scenario, target: Target, template_folders: Sequence[Path]
) -> tuple[dict[str, ServedModel], list[tuple[str, str]]]:
    machine = Machine(backends=target.backends(), has_gpu=bool(target.describe().get("gpu_uuids")))
    models, passed_over = {}, []
    for name, entry in scenario.models.items():
        template = find_template(entry.template, template_folders)
        variant, skipped = template.choose_variant(machine, entry.variant, entry.parameters)
        passed_over += [(f"{name}: variant {other}", why) for other, why in skipped]
        models[name] = template.serve(name, entry.parameters, variant)
    return models, passed_over


def _nothing_usable(skipped: Sequence[tuple[str, str]]) -> TargetUnavailable:
    reasons = "".join(f"\n  {name}: {why}" for name, why in skipped)
    return TargetUnavailable(
        f"no target of the scenario can be used here{reasons}",
        hint="`tritonchaos doctor` shows what is missing and how to get it",
    )
