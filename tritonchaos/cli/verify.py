"""`tritonchaos verify`: run a bundle and say whether it reproduces its finding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_BUNDLE = typer.Argument(help="Folder or .tar.gz that `tritonchaos repro` wrote.", metavar="BUNDLE", show_default=False)
_SERVER = typer.Option("--server-path", help="The tritonserver to use.", envvar="TRITONCHAOS_SERVER_PATH")
_IMAGE = typer.Option("--image", help="Run it in a container of this image.", envvar="TRITONCHAOS_IMAGE")
_GPUS = typer.Option("--gpus", help='GPUs that the container gets, "0,1".', envvar="TRITONCHAOS_GPUS")
_ACCESS = typer.Option(
    "--gpu-access", help="How it gets them: auto, toolkit, cdi or devices.", envvar="TRITONCHAOS_GPU_ACCESS"
)
_TWIN = typer.Option("--clean-twin", help="Run it without the defect's cause.", envvar="TRITONCHAOS_CLEAN_TWIN")
_MAX_TIME = typer.Option("--max-time", help="Longest time, such as 10min.", envvar="TRITONCHAOS_MAX_TIME")


def verify_command(
    bundle: Annotated[Path, _BUNDLE],
    server_path: Annotated[Path | None, _SERVER] = None,
    image: Annotated[str | None, _IMAGE] = None,
    gpus: Annotated[str | None, _GPUS] = None,
    gpu_access: Annotated[str, _ACCESS] = "auto",
    clean_twin: Annotated[bool, _TWIN] = False,
    max_time: Annotated[str, _MAX_TIME] = "30min",
) -> None:
    """Run a bundle and say reproduced (exit code 1), not reproduced (0) or cannot tell (3), with numbers.

    A bundle is a program: run one only if you would run what its sender sends you.
    """
    from tritonchaos.errors import UsageError
    from tritonchaos.reproducing import Where, read_way, verify_bundle
    from tritonchaos.units import parse_seconds

    try:
        deadline_s = parse_seconds(max_time)
    except ValueError as error:
        raise UsageError(f"--max-time: {error}") from error
    parts = tuple(int(part) if part.isdigit() else part for part in (gpus or "").replace(" ", "").split(",") if part)
    where = Where(server_path, image, parts, read_way(gpu_access))
    verified = verify_bundle(bundle, where, clean_twin=clean_twin, deadline_s=deadline_s)
    typer.echo(verified.text.rstrip())
    typer.echo(f"{bundle.name}: {verified.word}")
    raise typer.Exit(verified.exit_code)
