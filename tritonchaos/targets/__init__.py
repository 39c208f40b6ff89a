"""Targets: ways to start, watch and stop one tritonserver, one file each."""
