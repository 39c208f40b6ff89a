"""Where the scenarios and model templates that come with tritonchaos lie."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(name: str) -> Path:
    """Folder of the shipped "scenarios", "model_templates" or "docker": in an installed wheel or beside the package."""
    installed = _PACKAGE / "shipped_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
