#!/usr/bin/env bash
# Usage: scripts/install.sh VENV PIP-ARGUMENTS...
# Creates the environment if need be and installs into it. A package that was half unpacked when
# someone pressed Ctrl-C looks installed to pip, so an interrupted set-up starts from nothing.
set -euo pipefail

venv=$1
shift
marker=$venv/.installing

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed, and ${PYTHON:-python3} is not; install it, or name it:" \
        "make run PYTHON=/path/to/python3.12" >&2
    return 1
}

create() {
    local python
    python=$(find_python)
    echo "Creating $venv with $("$python" --version)" >&2
    # Out of the way in one step: a half deleted environment must not look like a whole one.
    [ ! -e "$venv" ] || mv "$venv" "$venv.old.$$"
    rm -rf "$venv".old.*
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "The environment could not be created; on Debian and Ubuntu," \
            "'apt-get install python3-venv' adds what is missing." >&2
        return 1
    fi
}

if [ -e "$marker" ] || [ ! -x "$venv/bin/python" ]; then
    create
elif ! new_enough "$venv/bin/python"; then
    echo "$venv was made with a Python older than 3.11; run 'make clean' and try again." >&2
    exit 1
elif ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    # Made by another tool, or cut off just before pip came in.
    "$venv/bin/python" -m ensurepip --upgrade >/dev/null
fi
touch "$marker"
echo "Installing packages (a few minutes the first time)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@"
rm -f "$marker"
