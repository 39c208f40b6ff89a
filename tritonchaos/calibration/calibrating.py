"""Runs the trials of a calibration one after the other, within its budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tritonchaos.calibration.document import Calibration
from tritonchaos.calibration.outcomes import Outcome, outcome_of
from tritonchaos.calibration.sampling_cost import CostMeter
from tritonchaos.calibration.spending import FIRST_GUESS_S, least_budget_s, left_out, next_trial
from tritonchaos.calibration.trials import DEVICE, HOST, PLACES, VARIANTS, Kind, Trial, scenario_values
from tritonchaos.choosing import choose, usable_target
from tritonchaos.errors import TemplateError, TritonChaosError, UsageError
from tritonchaos.finding_scenarios import open_scenario
from tritonchaos.native import find_compiler
from tritonchaos.overriding import Overrides
from tritonchaos.plugins import Target
from tritonchaos.running import RunOptions, run
from tritonchaos.scenario import Scenario, TargetEntry
from tritonchaos.scenario_engine import Interrupt

# A run that has begun may end a little after the budget, rather than be thrown away.
_GRACE_S: Final = 5.0
_LONGEST_S: Final = 300.0
_VOID_IN_A_ROW: Final = 5


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be calibrated.

    Attributes:
        target: The scenario's `target` list.
        overrides: Target, seed and settings of the command line.
        variants: "planted", "planted_gpu", or both; empty: all that this target can serve.
        budget_s: Seconds to be spent on runs; what has to be built first does not count.
        folder: Run directory, there and empty.
        tell: Shows a line of progress.
        most_runs: Runs after which it ends, however much of the budget is left; None: no limit.
    """

    target: tuple[Any, ...]
    overrides: Overrides
    variants: tuple[str, ...]
    budget_s: float
    folder: Path
    tell: Callable[[str], None] = field(default=lambda line: None)
    most_runs: int | None = None


def check_budget(budget_s: float, variants: Sequence[str]) -> None:
    """Refuse a budget that is too small for anything.

    Raises:
        UsageError: It is; says how much is needed.
    """
    least = least_budget_s(variants)
    if budget_s < least:
        raise UsageError(
            f"--budget: found {budget_s:g} s, too little for anything; expected at least {least:.0f} s",
            hint=f"a claim on {' or on '.join(variants)} rests on a clean twin and five planted leaks, some "
            f"{FIRST_GUESS_S:g} s each; 3min says something of each size",
        )


def calibrate(order: Order, interrupt: Interrupt) -> Calibration:
    """Run trials until the budget is spent; nothing that was started is left behind.

    Must be called from the main thread, as `running.run`.

    Raises:
        UsageError: The budget is too small for a claim.
        TritonChaosError: No target can be used, no compiler, or a variant that was named cannot be served.
        KeyboardInterrupt: The user asked twice to stop.
    """
    return _Calibrating(order, interrupt).run()


class _Calibrating:
    def __init__(self, order: Order, interrupt: Interrupt) -> None:
        self._order = order
        self._interrupt = interrupt
        self._outcomes: list[Outcome] = []
        self._left_out: list[str] = []
        self._targets: dict[str, Target] = {}
        self._meter = CostMeter()
        self._facts: Mapping[str, str] = {}
        self._void_in_a_row = 0

    def run(self) -> Calibration:
        find_compiler()
        variants = self._usable_variants()
        check_budget(self._order.budget_s, variants)
        began_s = time.monotonic()
        while not self._is_over():
            remaining_s = self._order.budget_s - (time.monotonic() - began_s)
            trial = next_trial(variants, self._outcomes, remaining_s)
            if trial is None:
                break
            variants = self._after(self._try(trial, remaining_s), variants)
        spent_s = time.monotonic() - began_s
        return Calibration(
            facts=self._facts,
            outcomes=tuple(self._outcomes),
            budget_s=self._order.budget_s,
            spent_s=spent_s,
            seed=self._order.overrides.seed or 1,
            cost=self._meter.cost,
            left_out=(*self._left_out, *left_out(variants, self._outcomes)),
            interrupted=self._interrupt.is_asked_by_user,
        )

    def _is_over(self) -> bool:
        return self._interrupt.is_asked_by_user or len(self._outcomes) == self._order.most_runs

    # --- what can be calibrated --------------------------------------------------------------------

    def _usable_variants(self) -> tuple[str, ...]:
        """Choose the target once, and build what has to be built, before the clock starts."""
        asked = self._order.variants
        if HOST in asked or not asked:
            self._choose(HOST)
        if not asked:
            return VARIANTS if self._has_gpu() else (HOST,)
        if DEVICE in asked:
            self._choose(DEVICE)
        return tuple(variant for variant in VARIANTS if variant in asked)

    def _has_gpu(self) -> bool:
        try:
            self._choose(DEVICE)
        except TemplateError as reason:
            self._left_out.append(f"{DEVICE}: {reason.message}")
            return False
        return True

    def _choose(self, variant: str) -> None:
        chosen = choose(self._scenario(Trial(variant, Kind.CLEAN), 0), usable=self._usable)
        self._facts = self._facts or chosen.target.describe()

    def _usable(self, entry: TargetEntry) -> Target:
        key = repr(entry)
        if key not in self._targets:
            self._targets[key] = usable_target(entry)
        return self._targets[key]

    def _scenario(self, trial: Trial, number: int) -> Scenario:
        seed = (self._order.overrides.seed or 1) + number
        values = scenario_values(trial, list(self._order.target), seed, self._place(number))
        overrides = self._order.overrides
        return open_scenario(values, Overrides(
            settings=overrides.settings, server_path=overrides.server_path, image=overrides.image, url=overrides.url
        ))  # fmt: skip

    def _place(self, number: int) -> str:
        return PLACES[number % len(PLACES)]

    # --- one trial -----------------------------------------------------------------------------------

    def _try(self, trial: Trial, remaining_s: float) -> Outcome:
        number = sum(outcome.trial == trial for outcome in self._outcomes)
        folder = f"{len(self._outcomes) + 1:03}-{trial.variant}-{trial.name.replace(' ', '-')}"
        place, began_s = self._place(number), time.monotonic()
        options = RunOptions(
            out=self._order.folder / "runs" / folder,
            max_time_s=min(_LONGEST_S, remaining_s + _GRACE_S),
            usable=self._usable,
            observers=(self._meter,),
        )
        try:
            finished = run(self._scenario(trial, number), options, self._interrupt).finished
        except TritonChaosError as error:
            return Outcome(trial, place, folder, time.monotonic() - began_s, void=error.message)
        self._facts = finished.history.facts.target
        return outcome_of(trial, place, folder, time.monotonic() - began_s, finished)

    def _after(self, outcome: Outcome, variants: tuple[str, ...]) -> tuple[str, ...]:
        """Take an outcome; return the variants that can be gone on with."""
        self._outcomes.append(outcome)
        self._order.tell(told(outcome))
        self._void_in_a_row = self._void_in_a_row + 1 if outcome.void else 0
        if any(name.startswith("nvml_") for name in outcome.lost) and outcome.trial.variant == DEVICE:
            self._left_out.append(f"{DEVICE}: a GPU was lost after {len(self._outcomes)} runs ({outcome.void})")
            return tuple(variant for variant in variants if variant != DEVICE)
        if self._void_in_a_row >= _VOID_IN_A_ROW:
            self._left_out.append(f"{_VOID_IN_A_ROW} runs in a row could not be used; the last because {outcome.void}")
            return ()
        return variants


def told(outcome: Outcome) -> str:
    """Say in a line what a run showed."""
    at = "" if outcome.trial.kind is Kind.CLEAN else f" at {outcome.place}"
    head = f"{outcome.trial.variant}, {outcome.trial.name}{at}"
    if outcome.void:
        return f"{head}: not used, {outcome.void}"
    found = ", ".join(f"{v.word} after {v.cycles} cycles ({metric})" for metric, v in outcome.verdicts.items())
    alarm = "; FALSE ALARM" if outcome.false_alarms else ""
    return f"{head}: {found}{alarm}"
