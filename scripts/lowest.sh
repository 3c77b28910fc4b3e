#!/bin/sh
# The tests with the oldest versions of the dependencies that pyproject.toml allows.
#
#   sh scripts/lowest.sh [PYTEST ARGUMENTS]   in a virtual environment of its own, .venv-lowest
#   sh scripts/lowest.sh --pins               only prints the versions
#
# Set PYTHON to choose the interpreter; numpy 1.26 needs 3.10 to 3.12.

set -eu
cd "$(dirname "$0")/.."

VENV=.venv-lowest
# The list of dependencies, each with == where it says >=.
PINS=$(sed -n '/^dependencies = \[/,/^\]/s/^ *"\(.*\)>=\(.*\)",$/\1==\2/p' pyproject.toml)

if [ "${1:-}" = --pins ]; then
    echo "$PINS"
    exit 0
fi
if [ "$(cat "$VENV/pins" 2>/dev/null)" != "$PINS" ]; then
    rm -rf "$VENV"
    "${PYTHON:-python3}" -m venv "$VENV"
    # shellcheck disable=SC2086  # one word for each package
    "$VENV/bin/python" -m pip install --quiet $PINS hypothesis pytest pytest-timeout pytest-xdist
    "$VENV/bin/python" -m pip install --quiet --no-deps -e .
    echo "$PINS" >"$VENV/pins"
fi
exec "$VENV/bin/python" -m pytest "$@"
