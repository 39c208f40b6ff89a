"""Chaos tester for Triton Inference Server model repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonchaos.python_api import run as run
    from tritonchaos.python_api import run_set as run_set

__version__ = "0.1.0"

_LAZY = ("run", "run_set")


def __getattr__(name: str) -> Any:
    """Import `run` and `run_set` when they are asked for, so that importing the package stays light."""
    if name not in _LAZY:
        raise AttributeError(f"module 'tritonchaos' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("tritonchaos.python_api"), name)


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]
