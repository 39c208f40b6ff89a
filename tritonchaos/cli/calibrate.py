"""`tritonchaos calibrate`: what this machine and target can see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonchaos.cli.options import Plugins, RunsFolder

if TYPE_CHECKING:
    from tritonchaos.calibration import Calibration, Order

_TARGET = typer.Option(help="Name of the target: local, docker or remote.", envvar="TRITONCHAOS_TARGET")
_SERVER = typer.Option(help="tritonserver to use.", envvar="TRITONCHAOS_SERVER_PATH")
_IMAGE = typer.Option(help="Docker image to use.", envvar="TRITONCHAOS_IMAGE")
_URL = typer.Option(help="Address of a server that is up.", envvar="TRITONCHAOS_URL")
_VARIANT = typer.Option(
    help="planted (host memory) or planted_gpu (device memory); both where there is a GPU.",
    envvar="TRITONCHAOS_VARIANT",
)
_SET = typer.Option(
    "--set",
    help="PATH=VALUE for any field of the scenarios; may be given again.",
    metavar="PATH=VALUE",
    envvar="TRITONCHAOS_SET",
)
_SEED = typer.Option(help="Seed of the first run of each kind; further runs count on.", envvar="TRITONCHAOS_SEED")
_BUDGET = typer.Option(help='Time to spend on runs, such as "5min".', envvar="TRITONCHAOS_BUDGET")
_OUT = typer.Option(help="Run directory; must be empty or absent.", envvar="TRITONCHAOS_OUT")
_JSON = typer.Option("--json", help="Print calibration.json on standard output.", envvar="TRITONCHAOS_JSON")


def calibrate_command(
    target: Annotated[str | None, _TARGET] = None,
    server_path: Annotated[Path | None, _SERVER] = None,
    image: Annotated[str | None, _IMAGE] = None,
    url: Annotated[str | None, _URL] = None,
    variant: Annotated[str | None, _VARIANT] = None,
    settings: Annotated[list[str] | None, _SET] = None,
    seed: Annotated[int, _SEED] = 1,
    budget: Annotated[str, _BUDGET] = "5min",
    out: Annotated[Path | None, _OUT] = None,
    runs: RunsFolder = Path("tritonchaos-runs"),
    json: Annotated[bool, _JSON] = False,
    plugin: Plugins = None,
) -> None:
    """Plant leaks of falling size on this machine and target, and say which are found, and how soon.

    Clean twins, bounded caches and late pools are run as well: none of them may be called a leak. Later reports on
    the same machine and target quote what was found.

    Exit codes: 0 calibrated, 1 something that is no leak was called one, 2 wrong usage, 3 nothing can be claimed,
    4 no target could be used, 130 interrupted.
    """
    from tritonchaos.cli.signals import obeyed
    from tritonchaos.plugins import load_plugins
    from tritonchaos.scenario_engine import Interrupt

    load_plugins(plugin or ())
    order = _order(target, server_path, image, url, variant, settings, seed, budget, out, runs)
    interrupt = Interrupt()
    with obeyed(interrupt, _tell_at_once):
        raise typer.Exit(_calibrate(order, interrupt, as_json=json))


def _tell_at_once(line: str) -> None:
    """Show a line from a signal handler, past the stream that may be in use just then."""
    import os
    from contextlib import suppress

    with suppress(OSError):
        os.write(2, f"{line}\n".encode())


def _order(
    target: str | None,
    server_path: Path | None,
    image: str | None,
    url: str | None,
    variant: str | None,
    settings: list[str] | None,
    seed: int,
    budget: str,
    out: Path | None,
    runs: Path,
) -> Order:
    from datetime import datetime, timezone

    from tritonchaos.calibration import Order
    from tritonchaos.overriding import Overrides
    from tritonchaos.store import new_run_folder

    _check_target(target, image, url)
    return Order(
        target=({target or "local": {}},),
        overrides=Overrides(
            settings=tuple(settings or ()),
            seed=seed,
            server_path=None if server_path is None else str(server_path),
            image=image,
            url=url,
        ),
        variants=_variants(variant),
        budget_s=_seconds(budget),
        folder=out or new_run_folder(runs, "calibrate", datetime.now(timezone.utc)),
        tell=_Told(),
    )


def _check_target(target: str | None, image: str | None, url: str | None) -> None:
    """Refuse a target that lacks what only the command line can say here, as there is no scenario file.

    Raises:
        UsageError: It does.
    """
    from tritonchaos.errors import UsageError

    if target == "docker" and image is None:
        raise UsageError("--target docker: found no image, expected one", hint="name it with --image")
    if target == "remote" and url is None:
        raise UsageError("--target remote: found no address, expected one", hint="name it with --url")


def _variants(variant: str | None) -> tuple[str, ...]:
    from tritonchaos.calibration.trials import VARIANTS
    from tritonchaos.errors import UsageError

    if variant is None:
        return ()
    if variant not in VARIANTS:
        raise UsageError(
            f"--variant: found {variant!r}, expected planted (host memory) or planted_gpu (device memory)",
            hint="only these have leaks of known size; what they show holds for other variants on the same metric",
        )
    return (variant,)


def _seconds(budget: str) -> float:
    from tritonchaos.errors import UsageError
    from tritonchaos.units import parse_seconds

    try:
        return parse_seconds(budget)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from None


class _Told:
    """Shows each run on standard error, with the time since the start."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._began_s = self._clock()

    def __call__(self, line: str) -> None:
        from tritonchaos.cli.progress import say
        from tritonchaos.units import format_seconds

        say(f"[{format_seconds(self._clock() - self._began_s)}] {line}")


def _calibrate(order: Order, interrupt: Any, *, as_json: bool) -> int:
    import json
    from datetime import datetime, timezone

    from tritonchaos.calibration import calibrate, document, page, write_files
    from tritonchaos.cli.output import write
    from tritonchaos.cli.progress import say
    from tritonchaos.store import prepare_folder

    prepare_folder(order.folder)
    calibration = calibrate(order, interrupt)
    date = datetime.now(timezone.utc).date().isoformat()
    found = document(calibration, date)
    for line in write_files(order.folder, calibration, found, date):
        say(line)
    write(json.dumps(found, indent=2) + "\n" if as_json else page(found))
    return exit_code(calibration)


def exit_code(calibration: Calibration) -> int:
    """Return 1 if there was a false alarm, 130 if interrupted, 3 if nothing can be claimed, else 0."""
    from tritonchaos.errors import ExitCode

    if calibration.false_alarms:
        return ExitCode.FINDINGS
    if calibration.interrupted:
        return ExitCode.INTERRUPTED
    claims = [calibration.claim(metric) for metric in calibration.metrics]
    return ExitCode.PASS if any(claims) else ExitCode.INCONCLUSIVE
