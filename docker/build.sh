#!/usr/bin/env bash
# Builds an image of this folder with the docker command.
#
# Usage: docker/build.sh tritonserver-cpu [--base IMAGE]     gives tritonchaos/tritonserver-cpu:2.51
#        docker/build.sh tritonchaos [--base IMAGE]          gives tritonchaos/tritonchaos:VERSION and :latest
#
# Python packages are downloaded here, by pip, so that a build itself needs no package index. With a base image that has
# the Debian packages that the Dockerfile names, it needs no network at all.
# Environment: PIP, the pip to download with (default: python3 -m pip); DOCKER_HOST as for docker.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(dirname "$here")"

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

image="${1:-}"
base=()
if [ "${2:-}" = --base ] && [ -n "${3:-}" ]; then
    base=(--build-arg "BASE=$3")
elif [ $# -gt 1 ]; then
    usage
fi
case "$image" in tritonserver-cpu | tritonchaos) ;; *) usage ;; esac

read -r -a pip <<<"${PIP:-python3 -m pip}"
context="$(mktemp -d)"
trap 'rm -rf "$context"' EXIT
cp "$here/$image/Dockerfile" "$context/"

# The images need no feature of BuildKit, and the older builder is in every engine without a plug-in of the client.
build() {
    DOCKER_BUILDKIT=0 docker build --quiet --force-rm "${base[@]}" "$@" "$context"
}

if [ "$image" = tritonserver-cpu ]; then
    "${pip[@]}" download --quiet --no-deps --dest "$context" --only-binary :all: nvidia-pytriton==0.7.0
    build --build-arg TRITON_SERVER_VERSION=2.51.0 --tag tritonchaos/tritonserver-cpu:2.51
else
    version="$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$root/tritonchaos/__init__.py")"
    "${pip[@]}" wheel --quiet --wheel-dir "$context/wheels" "$root[grpc]" pip
    build --tag "tritonchaos/tritonchaos:$version" --tag tritonchaos/tritonchaos:latest
fi
# Of the stage in which wheels were unpacked nothing is left to be used.
docker image prune --force --filter label=tritonchaos.stage=unpacked >/dev/null
