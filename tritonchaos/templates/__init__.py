"""Model templates: found, checked, built, and served as models with inputs and expected outputs."""

from __future__ import annotations

from tritonchaos.templates.serving import Machine, ModelTemplate, ServedModel, find_template, template_names
from tritonchaos.templates.tensors import Tensor

__all__ = ["Machine", "ModelTemplate", "ServedModel", "Tensor", "find_template", "template_names"]
