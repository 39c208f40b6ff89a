"""`tritonchaos pin`: ask which content a tag stands for, and list it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_IMAGES = typer.Argument(help="NAME:TAG, or a TAG of NVIDIA's tritonserver image, such as 26.07-py3.", metavar="IMAGE")
_WRITE = typer.Option("--write", help="Add to this list, such as docker/images.yaml.", envvar="TRITONCHAOS_WRITE")
_REPLACE = typer.Option("--replace", help="Also a tag with another digest.", envvar="TRITONCHAOS_REPLACE")


def pin_command(
    images: Annotated[list[str], _IMAGES],
    write: Annotated[Path | None, _WRITE] = None,
    replace: Annotated[bool, _REPLACE] = False,
) -> None:
    """Print which digest an image's tag stands for now, as an entry of docker/images.yaml.

    The registry is asked, through the Docker engine; where it cannot be reached, the engine's own images.
    """
    import os

    from tritonchaos.containers.engine import connect, find_engine_address
    from tritonchaos.pins import full_reference, read_pins, resolve, write_pins

    references = [full_reference(image) for image in images]
    if write is not None and write.exists():
        read_pins(write)  # a list that cannot be read is told before anything is asked
    engine = connect(find_engine_address(os.environ))
    try:
        pins = [resolve(engine, reference) for reference in references]
    finally:
        engine.close()
    for pin in pins:
        typer.echo(pin.entry())
        typer.echo(f"{pin.image}: said by {'the registry' if pin.origin == 'registry' else pin.origin}", err=True)
    if write is not None:
        added = write_pins(write, pins, replace)
        typer.echo(f"{write}: {len(added)} written, {len(pins) - len(added)} listed before", err=True)
