"""A tritonserver on this machine: found, laid out, started below a keeper, and ended with all it started."""
