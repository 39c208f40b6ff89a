"""Model templates: found, checked, built, and served as models with inputs and expected outputs."""

from __future__ import annotations

from tritonchaos.templates.own_model import OwnModel, serve_own
from tritonchaos.templates.serving import Machine, ModelTemplate, ServedModel, find_template, template_names
from tritonchaos.templates.tensors import Tensor

__all__ = [
    "Machine",
    "ModelTemplate",
    "OwnModel",
    "ServedModel",
    "Tensor",
    "find_template",
    "serve_own",
    "template_names",
]
