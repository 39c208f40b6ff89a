"""The model repository on disk: laid out from files, edited atomically, kept at each edit, restored to the byte."""

from __future__ import annotations

from tritonchaos.repository.files import model_names
from tritonchaos.repository.model_repository import ModelRepository

__all__ = ["ModelRepository", "model_names"]
