"""The command `tritonchaos`: its list of commands, and the one place that prints errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, TextIO, cast

import typer

from tritonchaos.cli import (
    calibrate,
    clean,
    compare,
    doctor,
    export,
    history,
    judge,
    list_,
    pin,
    report,
    repro,
    run,
    schema,
    show,
    verify,
)
from tritonchaos.errors import ExitCode, TritonChaosError

app = typer.Typer(
    name="tritonchaos",
    help="Chaos tester for Triton Inference Server model repositories.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in (
    ("run", run.run_command),
    ("judge", judge.judge_command),
    ("report", report.report_command),
    ("compare", compare.compare_command),
    ("show", show.show_command),
    ("export", export.export_command),
    ("history", history.history_command),
    ("calibrate", calibrate.calibrate_command),
    ("repro", repro.repro_command),
    ("verify", verify.verify_command),
    ("list", list_.list_command),
    ("doctor", doctor.doctor_command),
    ("pin", pin.pin_command),
    ("schema", schema.schema_command),
    ("clean", clean.clean_command),
):
    app.command(_name)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tritonchaos.cli.version import version_lines

        for line in version_lines():
            typer.echo(line)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print versions and exit.")
    ] = False,
) -> None:
    """Chaos tester for Triton Inference Server model repositories."""


def main() -> None:
    """Run the command line and leave with an exit code of `ExitCode`."""
    _open_standard_streams()
    sys.stdout = cast("TextIO", _Output(sys.stdout))
    try:
        app()
    except TritonChaosError as error:
        from tritonchaos.summary import printable  # a server's words may be in it

        _say(f"tritonchaos: {printable(str(error))}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("tritonchaos: interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    except Exception:
        import traceback

        _say(traceback.format_exc().rstrip())
        _say("tritonchaos: this is a defect of tritonchaos itself; please report the lines above")
        sys.exit(ExitCode.OWN_FAULT)


def _open_standard_streams() -> None:
    """Put something where standard streams were closed (`>&-`), before a file of ours gets their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _say(text: str) -> None:
    """Print on standard error; nothing comes of it where that has gone (a closed terminal)."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return


class _Output:
    """Standard output whose reader may go (`| head`): what is written then is lost, the exit code stays the verdict's.

    Left to itself the command line would end with 1 there, which says that there are findings.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lead_nowhere(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._lead_nowhere(error)

    def _lead_nowhere(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):
            _say(f"tritonchaos: cannot write standard output: {error.strerror}")
        # What is still in its buffer goes there too, so that Python's own flush at the end does not fail.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
