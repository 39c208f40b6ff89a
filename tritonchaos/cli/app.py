"""The command `tritonchaos`: its list of commands, and the one place that prints errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tritonchaos import __version__
from tritonchaos.cli import clean, doctor, judge, list_, report, run, schema
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
    ("list", list_.list_command),
    ("doctor", doctor.doctor_command),
    ("schema", schema.schema_command),
    ("clean", clean.clean_command),
):
    app.command(_name)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tritonchaos {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Chaos tester for Triton Inference Server model repositories."""


def main() -> None:
    """Run the command line and leave with an exit code of `ExitCode`."""
    try:
        app()
    except TritonChaosError as error:
        print(f"tritonchaos: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("tritonchaos: interrupted", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); Python must not try to flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OWN_FAULT)
    except Exception:
        import traceback

        traceback.print_exc()
        print("tritonchaos: this is a defect of tritonchaos itself; please report the lines above", file=sys.stderr)
        sys.exit(ExitCode.OWN_FAULT)
