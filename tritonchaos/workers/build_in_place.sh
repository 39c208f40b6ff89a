#!/bin/sh
# Builds a model file with what is installed where a server runs: with build.py and its Python, else with build.cc and its
# C++ compiler.
#
# Usage: sh build_in_place.sh identify
#        sh build_in_place.sh python OUT PARAMETERS_AS_JSON
#        sh build_in_place.sh c++ OUT NAME=VALUE...
#
# The folder of this file is written: build_model.py and the template's build.py, build.cc and build.include lie there. What
# was told comes into the file told.json, and with which of the two into the file way.
cd "$(dirname "$0")" || exit 1
export TMPDIR="$PWD" PYTHONDONTWRITEBYTECODE=1

# Runs a program; its last line is what it tells, if it succeeds.
told_by() {
    "$@" >output
    status=$?
    cat output
    [ "$status" = 0 ] && tail -n 1 output >told.json
}

compile() {
    for compiler in "${CXX:-}" c++ g++ clang++; do
        [ -n "$compiler" ] && command -v "$compiler" >/dev/null && break
        compiler=""
    done
    if [ -z "$compiler" ]; then
        echo "no C++ compiler for build.cc (looked for \$CXX, c++, g++, clang++)"
        return 1
    fi
    # build.include holds stand-ins for headers that are found nowhere else.
    flags="$(sed -n 's|^// flags: ||p' build.cc | tr '\n' ' ')"
    # shellcheck disable=SC2086
    "$compiler" -std=c++17 -o build_program build.cc -idirafter build.include $flags
}

command="$1"
shift
case "$command" in
    identify)
        if [ -f build.py ] && command -v python3 >/dev/null && told_by python3 build_model.py identify build.py; then
            echo python >way
        elif [ -f build.cc ]; then
            compile && told_by ./build_program identify && echo c++ >way
        else
            exit 1
        fi
        ;;
    python) told_by python3 build_model.py build build.py "$@" ;;
    c++) compile && told_by ./build_program build "$@" ;;
    *) exit 2 ;;
esac
