"""Finds plug-ins: the modules of each family, entry points, single files."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tritonchaos.errors import PluginError
from tritonchaos.plugins.registry import FAMILIES, MISSING, MissingPlugin


def _attempt(name: str, load: Callable[[], object]) -> None:
    try:
        load()
    except ImportError as error:
        missing = MissingPlugin(name, str(error))
        if missing not in MISSING:
            MISSING.append(missing)


def load_plugins(files: Sequence[Path] = ()) -> None:
    """Import every module of every family, the entry points `tritonchaos.plugins`, and single files.

    Args:
        files: Python files named with `--plugin`.

    Raises:
        PluginError: A named file is missing or fails; a built-in or entry point that cannot be imported is listed in
            `MISSING` instead.
    """
    for family in FAMILIES:
        package = importlib.import_module(f"tritonchaos.{family}")
        for module in pkgutil.iter_modules(package.__path__):
            name = f"tritonchaos.{family}.{module.name}"
            _attempt(f"{family}/{module.name}", lambda name=name: importlib.import_module(name))  # type: ignore[misc]
    for entry_point in importlib.metadata.entry_points(group="tritonchaos.plugins"):
        _attempt(entry_point.name, entry_point.load)
    for file in files:
        _load_file(file)


def _load_file(file: Path) -> None:
    if not file.is_file():
        raise PluginError(f"plug-in file {file} does not exist", hint="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"tritonchaos_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plug-in file {file} is not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and type hints look their module up by name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"plug-in file {file} failed: {type(error).__name__}: {error}") from error
