"""Chaos tester for Triton Inference Server model repositories."""

__version__ = "0.1.0"
