# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
# Each makes .venv, installs what it needs from the package registry, and runs.

VENV := .venv
# The embedded tritonserver comes with a Python up to 3.12.
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$p && break; done)

.PHONY: demo test lint unit bench growth clean

demo: $(VENV)/.ready
	$(VENV)/bin/tritonchaos run failed-load

test: lint unit

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

unit: $(VENV)/.ready
	$(VENV)/bin/pytest -m "not long and not gpu"

bench: $(VENV)/.ready
	$(VENV)/bin/python -m tests.benchmarks

growth: $(VENV)/.ready
	$(VENV)/bin/python -m tests.growth

$(VENV)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "found no Python 3.10 to 3.12; install one, or call make PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[local,grpc,dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist
