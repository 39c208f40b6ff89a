"""Exceptions: tritonchaos could not do its own work. A defect of the server is a `Finding`, never one of these.

TritonChaosError                 message says what, `hint` says what to do next, `exit_code` what the command returns
├── UsageError                   the command line asks for something that cannot be done
├── ScenarioError                the scenario file is not valid
├── TemplateError                a model template cannot be found, read or built
├── ConfigTextError              a config.pbtxt cannot be read or edited
├── TargetError                  a tritonserver cannot be had
│   ├── TargetUnavailable        this target cannot be used here; the next one may be tried
│   └── TargetNotLive            it was started and never became live
├── SamplerError                 a sampler that was open can no longer read
├── StoreError                   the run directory cannot be written or read
├── RunBrokeOff                  a run that had begun cannot go on; what it would have shown is unknown
└── PluginError                  a plug-in cannot be loaded or does not keep its protocol
TritonChaosBug                   a defect of tritonchaos itself; nothing swallows it
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the command line returns. Fail beats unknown beats pass."""

    PASS = 0
    FINDINGS = 1
    USAGE = 2
    INCONCLUSIVE = 3
    NO_TARGET = 4
    OWN_FAULT = 70
    INTERRUPTED = 130


class TritonChaosError(Exception):
    """tritonchaos could not do its own work.

    Args:
        message: What was found and what was expected.
        hint: What to do next; printed on its own line.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.OWN_FAULT

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class UsageError(TritonChaosError):
    """The command line asks for something that cannot be done."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class ScenarioError(TritonChaosError):
    """The scenario file is not valid."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class TemplateError(TritonChaosError):
    """A model template cannot be found, read or built."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class ConfigTextError(TritonChaosError):
    """A config.pbtxt cannot be read or edited as asked."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class TargetError(TritonChaosError):
    """A tritonserver cannot be had."""

    exit_code: ClassVar[ExitCode] = ExitCode.NO_TARGET


class TargetUnavailable(TargetError):
    """This target cannot be used here; the next in the scenario's list may be tried."""


class TargetNotLive(TargetError):
    """A tritonserver was started and its live endpoint never answered.

    Args:
        message: What happened, in one sentence.
        state: "exited", "running" or another state of the process or container.
        exit_status: Exit code, or minus the signal number; None while it runs.
        log_lines: The last lines of its log.
        hint: What to do next.
    """

    def __init__(
        self,
        message: str,
        *,
        state: str,
        exit_status: int | None,
        log_lines: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        shown = "".join(f"\n  | {line}" for line in log_lines)
        super().__init__(f"{message}{shown}", hint=hint)
        self.state = state
        self.exit_status = exit_status
        self.log_lines = log_lines


class SamplerError(TritonChaosError):
    """A sampler that was open can no longer read; its metrics are lost, never zero.

    Args:
        message: What happened.
        metrics: The metrics that are lost while the sampler reads the others on; empty: all of the sampler.
        hint: What to do next.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INCONCLUSIVE

    def __init__(self, message: str, *, metrics: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.metrics = frozenset(metrics)


class StoreError(TritonChaosError):
    """The run directory cannot be written or read."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class RunBrokeOff(TritonChaosError):
    """A run whose server had started cannot go on, for a reason that is not the server's; nothing can be told of it."""

    exit_code: ClassVar[ExitCode] = ExitCode.INCONCLUSIVE


class PluginError(TritonChaosError):
    """A plug-in cannot be loaded or does not keep its protocol."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class TritonChaosBug(Exception):
    """A defect of tritonchaos itself; it reaches the command line with its traceback."""
