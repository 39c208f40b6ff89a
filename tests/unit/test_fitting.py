"""What a target lacks, and what may be left out for it."""

from __future__ import annotations

import pytest

from tritonchaos.fitting import fit, uses
from tritonchaos.plugins import ABILITIES, load_plugins
from tritonchaos.scenario import Scenario, load_scenario, parse_scenario
from tritonchaos.shipped import shipped_folder

load_plugins()

NONE: frozenset[str] = frozenset()
CYCLES = "{phase: work, cycles: 3, each: [{load: m}, {unload: m}]}"
AFTER = "{phase: after_exit, steps: [{stop_server: {}}, {sample: {name: after_exit}}]}"


def scenario(*phases: str, more: str = "") -> Scenario:
    listed = "".join(f"\n  - {phase}" for phase in phases)
    return parse_scenario(
        f"scenario: s\nmodels: {{m: {{template: identity}}}}\n{more}\nphases:{listed}\ncheck: [hang]\n",
        "s.yaml",
    )


@pytest.mark.parametrize("name", ["failed-load", "failed-load-as-reported", "planted-leak", "good-load"])
def test_shipped_scenarios_fit_a_server_that_is_not_ours(name: str) -> None:
    fits = fit(load_scenario(shipped_folder("scenarios") / f"{name}.yaml"), NONE)
    assert fits.lacks == ""
    assert set(fits.skipped_phases) <= {"after_exit", "who_holds_it"}


def test_what_comes_after_the_stop_is_left_out_and_said() -> None:
    fits = fit(scenario(CYCLES, AFTER, "{phase: later, steps: [{wait: 1s}]}"), NONE)
    assert fits.lacks == ""
    assert fits.skipped_phases == dict.fromkeys(("after_exit", "later"), "the server is not ours to stop")


def test_with_every_ability_nothing_is_left_out() -> None:
    fits = fit(scenario(CYCLES, AFTER, more="server: {flags: {log-verbose: 1}, fresh: phase}"), frozenset(ABILITIES))
    assert (fits.lacks, fits.skipped_phases, fits.not_applied) == ("", {}, ())


@pytest.mark.parametrize(
    ("phases", "more", "lacks"),
    [
        ([AFTER, CYCLES], "", "lacks: stop (stop_server in phase after_exit)"),
        (["{phase: r, steps: [restart_server]}", CYCLES], "", "lacks: restart (restart_server in phase r)"),
        (["{phase: r, cycles: 2, each: [restart_server]}"], "", "lacks: restart"),
        (["{phase: r, cycles: 2, each: [{repeat: {times: 2, steps: [restart_server]}}]}"], "", "lacks: restart"),
        ([CYCLES, "{phase: a, steps: [stop_server, start_server]}"], "", "lacks: stop, start"),
        (["{phase: w, steps: [{infer: m}]}"], "server: {mode: poll}", "lacks: start (model control mode poll)"),
        ([CYCLES], "server: {fresh: phase}", "lacks: restart"),
        (["{phase: w, server: {flags: {log-verbose: 1}}, cycles: 2, each: [{load: m}]}"], "", "lacks: restart"),
        (["{phase: w, cycles: 2, each: [{load: {model: m, expect: {log: loaded}}}]}"], "", "lacks: log (load m"),
        (["{phase: w, steps: [{load: {model: m, via: grpc}}]}"], "", "lacks: grpc (load m via grpc in phase w)"),
        (["{phase: w, steps: [{infer: {model: m, via: both}}]}"], "", "lacks: grpc (infer m via grpc in phase w)"),
    ],
)
def test_what_cannot_be_left_out_is_named_with_its_place(phases: list[str], more: str, lacks: str) -> None:
    assert fit(scenario(*phases, more=more), NONE).lacks.startswith(lacks)


def test_a_phase_that_only_follows_a_finding_is_left_out() -> None:
    fits = fit(scenario(CYCLES, "{phase: ladder, when: leak, steps: [restart_server]}"), NONE)
    assert (fits.lacks, fits.skipped_phases) == ("", {"ladder": "the server is not ours to restart"})


def test_server_settings_without_effect_are_told() -> None:
    fits = fit(scenario(CYCLES, more="server: {flags: {log-verbose: 1}, env: {A: b}}"), NONE)
    assert fits.not_applied == (
        ("server flags log-verbose", "not set: the server is not ours to start"),
        ("server env A", "not set: the server is not ours to start"),
    )


@pytest.mark.parametrize("off", ["false", "'false'", "0"])
def test_a_server_started_without_grpc_cannot_be_asked_over_it(off: str) -> None:
    asked = "{phase: w, steps: [{load: {model: m, via: grpc}}]}"
    every = frozenset(ABILITIES)
    assert fit(scenario(asked), every).missing == frozenset()
    assert fit(scenario(asked, more=f"server: {{flags: {{allow-grpc: {off}}}}}"), every).missing == {"grpc"}
    of_phase = asked.replace("steps:", f"server: {{flags: {{allow-grpc: {off}}}}}, steps:")
    assert fit(scenario(CYCLES, of_phase), every).missing == {"grpc"}


@pytest.mark.parametrize(("step", "used"), [("cut_network: {for: 1s}", True), ("wait: 1s", False)])
def test_what_a_scenario_uses_is_found_in_tracks_too(step: str, used: bool) -> None:
    phase = f"{{phase: p, cycles: 1, each: [{{wait: 1s}}], meanwhile: [{{track: t, each: [{{{step}}}]}}]}}"
    assert uses(scenario(phase), "cut_network") is used
