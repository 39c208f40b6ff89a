"""Benchmarks of tritonchaos against bare loops on the same server; `python -m tests.benchmarks` runs them all."""
