"""Samplers: read numbers about the server and its machine, one file each."""
