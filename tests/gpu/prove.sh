#!/usr/bin/env bash
# Runs all GPU tests in one go on a machine with an NVIDIA driver: tests/gpu/prove.sh [WHEELS]
# With WHEELS, a folder of wheels, nothing is asked of a package registry. The GPU's settings are left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$work/site" "$1"/*.whl
    export PYTHONPATH="$PWD:$work/site${PYTHONPATH:+:$PYTHONPATH}"
    python=python3
else
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q '.[local,grpc,dev]'
    python="$work/venv/bin/python"
fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
"$python" -m tests.gpu.settle
"$python" -m pytest tests/gpu -m gpu -q --durations=0 -p no:cacheprovider
