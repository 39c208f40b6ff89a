"""Chooses the target that runs a scenario and the variant of each model, before anything starts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tritonchaos.client import HOW_TO_GET_GRPC
from tritonchaos.errors import TargetUnavailable, TemplateError
from tritonchaos.fitting import Fit, fit
from tritonchaos.plugins import TARGETS, BuildsFiles, HasOwnModels, Target, abilities_of, repository_place
from tritonchaos.scenario import Scenario, TargetEntry, build_plugin
from tritonchaos.templates import Machine, ServedModel, find_template, serve_own


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a scenario will run on.

    Attributes:
        target: Ready to be started.
        skipped: (what, why) for targets and variants that were passed over, in the scenario's order.
        models: Scenario's name -> model to serve.
        skipped_phases: Phase -> why this target leaves it out.
    """

    target: Target
    skipped: tuple[tuple[str, str], ...]
    models: Mapping[str, ServedModel]
    skipped_phases: Mapping[str, str] = field(default_factory=dict)

    @property
    def variants(self) -> dict[str, str]:
        """Model -> variant that is served."""
        return {name: model.variant for name, model in self.models.items()}


def usable_target(entry: TargetEntry) -> Target:
    """Make a target and let it check that it can be used here.

    Raises:
        TargetUnavailable: It cannot; says why.
        ScenarioError: Its fields are not valid.
    """
    if entry.missing:
        raise TargetUnavailable(entry.missing)
    target: Target = build_plugin(TARGETS, entry.name, dict(entry.fields), f"target {entry.name}")
    target.check()
    return target


def choose(
    scenario: Scenario,
    template_folders: Sequence[Path] = (),
    usable: Callable[[TargetEntry], Target] = usable_target,
) -> Chosen:
    """Take the first target of the scenario's list that can be used here and can serve its models.

    Args:
        template_folders: Searched for model templates before the shipped ones.
        usable: Makes a target and checks it; a set of runs remembers what it answered.

    Raises:
        TargetUnavailable: None can be used; names each with its reason.
        TemplateError: A template does not exist, or a variant that was asked for cannot be served.
    """
    for name in {entry.template for entry in scenario.models.values() if entry.template is not None}:
        find_template(name, template_folders)  # a template that does not exist is not the target's fault
    skipped: list[tuple[str, str]] = []
    hint = ""
    for entry in scenario.target:
        try:
            target = usable(entry)
            fits = _fit(scenario, target)
            models, passed_over = _serve_models(scenario, target, template_folders)
        except TargetUnavailable as reason:
            skipped.append((entry.name, reason.message))
            hint = reason.hint or hint
            continue
        except TemplateError as reason:
            if len(scenario.target) == 1:
                raise
            skipped.append((entry.name, reason.message))
            continue
        return Chosen(target, (*skipped, *fits.not_applied, *passed_over), models, fits.skipped_phases)
    raise _nothing_usable(skipped, hint if len(scenario.target) == 1 else "")


def _fit(scenario: Scenario, target: Target) -> Fit:
    has_grpcio = importlib.util.find_spec("grpc") is not None
    fits = fit(scenario, abilities_of(target) if has_grpcio else abilities_of(target) - {"grpc"})
    if fits.lacks:
        message, hint = _told(fits, has_grpcio)
        raise TargetUnavailable(message, hint=hint)
    if isinstance(target, HasOwnModels):
        target.check_models(scenario.models)
    return fits


def _told(fits: Fit, has_grpcio: bool) -> tuple[str, str]:
    """What a target lacks, and what can be done about it where something can."""
    if "grpc" not in fits.missing:
        return fits.lacks, ""
    if not has_grpcio:
        return f"{fits.lacks}: grpcio is not installed", HOW_TO_GET_GRPC
    return fits.lacks, "give target remote its `grpc` address, start a server of ours without allow-grpc: false"


def _serve_models(
    scenario: Scenario, target: Target, template_folders: Sequence[Path]
) -> tuple[dict[str, ServedModel], list[tuple[str, str]]]:
    facts = target.describe()
    machine = Machine(
        backends=target.backends(),
        has_gpu=bool(facts.get("gpu_uuids")),
        tensorrt_version=facts.get("tensorrt_version") or None,
        place=target if isinstance(target, BuildsFiles) else None,
    )
    models: dict[str, ServedModel] = {}
    passed_over: list[tuple[str, str]] = []
    for name, entry in scenario.models.items():
        if entry.template is None:
            folder = scenario.folder / (entry.path or "")
            models[name] = serve_own(name, folder, machine, entry.inputs, entry.expect_outputs, scenario.folder)
            continue
        if machine.backends is None and entry.variant is None:
            raise TargetUnavailable(f"a server cannot be asked for its backends, so {_NAME_IT.format(model=name)}")
        template = find_template(entry.template, template_folders)
        variant, skipped = template.choose_variant(machine, entry.variant, entry.parameters)
        passed_over += [(f"{name}: variant {other}", why) for other, why in skipped]
        models[name] = _with_backends(template.serve(name, entry.parameters, variant, machine.place), target)
    return models, passed_over


_NAME_IT: Final = (
    "name the variant of {model} in the scenario or with --variant, or list the target's `backends` in the scenario"
)


def _with_backends(model: ServedModel, target: Target) -> ServedModel:
    """Make our own backend loadable: the target does, or the model brings it along in its directory.

    Source: Triton backend documentation, "Backend Shared Library": it is searched in the version directory, the model
    directory, and the backend directory.
    """
    ours = {name: folder for name, folder in model.backends.items() if name not in (target.backends() or ())}
    if "backends" in abilities_of(target) or not model.backends:
        return model
    if ours and repository_place(target).sends_files:
        # Sent along, each load would unpack and open the library anew and keep it: a leak of our own making.
        name, folder = next(iter(ours.items()))
        raise TargetUnavailable(
            f"there is no repository folder to bring our backend {name} in: give the target the `repository` folder of "
            f"the server; or copy {folder}/libtriton_{name}.so to {name}/ in the server's backend directory and give "
            f"the target `backends: [{name}]`"
        )
    libraries = {f"libtriton_{name}.so": folder / f"libtriton_{name}.so" for name, folder in ours.items()}
    return replace(model, files={**model.files, **libraries}, backends={})


def _nothing_usable(skipped: Sequence[tuple[str, str]], hint: str) -> TargetUnavailable:
    reasons = "".join(f"\n  {name}: {why}" for name, why in skipped)
    return TargetUnavailable(
        f"no target of the scenario can be used here{reasons}",
        hint=hint or "`tritonchaos doctor` shows what is missing and how to get it",
    )
