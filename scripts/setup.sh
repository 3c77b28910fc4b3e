#!/bin/sh
# Prepare a clone for work: a virtual environment in .venv, the project in it, and an OpenCL device.
#
#   sh scripts/setup.sh python    the virtual environment only (lint, doctor)
#   sh scripts/setup.sh docs      ... and what makes the site of the documentation
#   sh scripts/setup.sh demo      ... and any OpenCL device
#   sh scripts/setup.sh bench     ... and oneDNN to compare with
#   sh scripts/setup.sh test      ... pocl (the reference device), oneDNN and oclgrind
#
# Works as root, with passwordless sudo, and with neither. Safe to repeat: what is done is not done again,
# and a call with nothing to do takes well under a second. Set PYTHON to choose the interpreter.
# SETUP_NO_APT=1 behaves as for a user who may not install packages.

set -eu
cd "$(dirname "$0")/.."

GOAL=${1:-test}
VENV=.venv
PY=$VENV/bin/python
LOG=$VENV/setup.log
VENDORS=/etc/OpenCL/vendors

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: error: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Run a command with its output in the log; show the log's end only when it fails.
logged() {
    mkdir -p "$VENV"
    printf '\n$ %s\n' "$*" >>"$LOG"
    "$@" >>"$LOG" 2>&1 </dev/null && return 0
    status=$?
    printf 'setup: this failed: %s\n' "$*" >&2
    tail -n 15 "$LOG" | sed 's/^/  | /' >&2
    return $status
}

# ---- packages of the system --------------------------------------------------------------------------

# Prints the prefix that makes a command run as root ("" for root itself); fails where there is none.
root_prefix() {
    [ -z "${SETUP_NO_APT:-}" ] && have apt-get || return 1
    if [ "$(id -u)" = 0 ]; then
        echo ""
    elif have sudo && sudo -n true 2>/dev/null; then
        echo "sudo -n"
    else
        return 1
    fi
}

# apt_install WHY PACKAGE...: fails, and says nothing, where packages cannot be installed by this user.
apt_install() {
    why=$1
    shift
    as_root=$(root_prefix) || return 1
    say "apt-get install $* ($why)"
    install="env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
    # The lists of a new machine are empty or old: update once, and only when the install needs it.
    # shellcheck disable=SC2086  # the prefixes are several words on purpose
    $as_root $install "$@" >>"$LOG" 2>&1 </dev/null ||
        { logged $as_root apt-get update && logged $as_root $install "$@"; }
}

# ---- the virtual environment -------------------------------------------------------------------------

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() {
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        if have "$candidate" && is_new_enough "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

venv_works() { [ -x "$PY" ] && "$PY" -m pip --version >/dev/null 2>&1; }

# Debian keeps ensurepip in a package of its own; without it `python3 -m venv` makes a .venv without pip.
has_ensurepip() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

# Ways to a .venv with pip, best first. Each leaves a working one or fails.
make_venv() {
    base=$1
    if ! has_ensurepip "$base"; then
        version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "Debian's Python comes without venv" "python$version-venv" || true
    fi
    if has_ensurepip "$base"; then
        logged "$base" -m venv "$VENV" && return 0
    fi
    if "$base" -m virtualenv --version >/dev/null 2>&1; then
        logged "$base" -m virtualenv -q "$VENV" && return 0
    fi
    logged "$base" -m venv --without-pip "$VENV" || return 1
    if "$base" -m pip --version >/dev/null 2>&1; then
        # pip 22.3 and later can install into another environment.
        say "python3-venv is missing: using this Python's own pip to fill $VENV"
        logged "$base" -m pip --python "$PY" install pip && return 0
    fi
    pip_from_debian
}

# No root, no pip, no ensurepip: Debian's wheel of pip, fetched by apt into folders of our own.
pip_from_debian() {
    have apt-get && have dpkg-deb || return 1
    say "no pip on this machine and no right to install it: fetching Debian's pip into $VENV"
    state=$(pwd)/$VENV/apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    apt="apt-get -o Dir::State::Lists=$state/lists -o Dir::Cache=$state/cache -o APT::Sandbox::User="
    # shellcheck disable=SC2086  # several words on purpose
    logged $apt update &&
        (cd "$state" && $apt download python3-pip-whl >>../setup.log 2>&1) || return 1
    logged dpkg-deb -x "$state"/python3-pip-whl_*.deb "$state/unpacked" || return 1
    for wheel in "$state"/unpacked/usr/share/python-wheels/pip-*.whl; do
        logged "$PY" "$wheel/pip" install pip || return 1
    done
    rm -rf "$state"
}

# Whether the environment is of the Python that the user named; of any, where none was named.
is_of_python() {
    case ${PYTHON:-python3} in python3 | python) return 0 ;; esac
    have "$PYTHON" && is_new_enough "$PYTHON" || return 0
    asks='import sys; print(sys.version_info[:3], sys.implementation.name)'
    [ "$("$PY" -c "$asks")" = "$("$PYTHON" -c "$asks")" ]
}

ensure_venv() {
    if venv_works; then
        is_of_python && return 0
        say "$VENV is of another Python than PYTHON=$PYTHON"
    fi
    base=$(find_python) || die "Python 3.10 or newer is needed; '${PYTHON:-python3}' is missing or older." \
        "Install one (Debian and Ubuntu: apt-get install python3 python3-venv)," \
        "or name one: make test PYTHON=/path/to/python3.12"
    say "making $VENV with $base"
    rm -rf "$VENV" # missing, or half made, or made by a Python that is gone
    mkdir -p "$VENV"
    if ! make_venv "$base" || ! venv_works; then
        die "no virtual environment could be made in $VENV." \
            "Ask for:   sudo apt-get install python3-venv" \
            "or make one yourself, with pip in it, and run this again:" \
            "           virtualenv $VENV        (or: uv venv --seed $VENV)"
    fi
}

# ---- the project -------------------------------------------------------------------------------------

ensure_project() {
    # The folder is part of the stamp: an environment that was copied or moved is installed again.
    want=$(cat pyproject.toml && pwd)
    [ "$(cat "$VENV/installed" 2>/dev/null)" = "$want" ] && return 0
    extras=dev,demo
    if [ "$GOAL" = docs ]; then
        [ "$(cat "$VENV/installed-docs" 2>/dev/null)" = "$want" ] && return 0
        extras=docs
        say "installing clformats and what makes its site into $VENV: about 290 MB (log: $LOG)"
    elif [ "$GOAL" = demo ]; then # what the demo runs with, a sixth of what developers use
        [ "$(cat "$VENV/installed-demo" 2>/dev/null)" = "$want" ] && return 0
        extras=demo
        say "installing clformats and what the demo needs into $VENV: about 110 MB (log: $LOG)"
    else
        say "installing clformats and its tools into $VENV: about 780 MB, a minute or two (log: $LOG)"
    fi
    logged "$PY" -m pip install --disable-pip-version-check -e ".[$extras]" ||
        die "pip could not install the project; the reason stands above and in $LOG."
    name=installed
    case $GOAL in demo | docs) name=installed-$GOAL ;; esac
    printf '%s\n' "$want" >"$VENV/$name"
}

# ---- an OpenCL device --------------------------------------------------------------------------------

# Builds and runs a small kernel on every device: a platform that is listed may still not work.
# By path, not as a module of the package: a half edited package is no reason to install drivers.
probe() {
    "$PY" -c 'import runpy; runpy.run_path("clformats/doctor/probe.py", run_name="__main__")'
}
device_works() { probe >>"$LOG" 2>&1; }

# What the answer depends on: the vendor files and the variables that the loader reads.
device_key() {
    echo "$(ls -l "$VENDORS" 2>/dev/null) ${OCL_ICD_VENDORS:-} ${OPENCL_VENDOR_PATH:-} ${POCL_DEVICES:-}"
}

device_known_good() { [ "$(cat "$VENV/device" 2>/dev/null)" = "$(device_key)" ]; }

install_pocl() { apt_install "an OpenCL device on the CPU" pocl-opencl-icd; }

install_intel() {
    [ "$(uname -m)" = x86_64 ] || return 1
    say "installing Intel's OpenCL runtime for CPUs from PyPI (pocl is not to be had here; about 260 MB)"
    logged "$PY" -m pip install --disable-pip-version-check -e '.[cpu]'
}

ensure_device() {
    # Tests are compared on pocl, so they want it even where another device works.
    if [ "$GOAL" = test ] && [ ! -e "$VENDORS/pocl.icd" ] && root_prefix >/dev/null; then
        install_pocl || say "pocl could not be installed; going on with what there is"
    fi
    device_known_good && return 0
    if ! device_works; then
        # With these set the loader looks nowhere else, so that installing anything would not help.
        [ -z "${OCL_ICD_VENDORS:-}${OPENCL_VENDOR_PATH:-}" ] || no_device
        install_pocl || true
        device_works || { install_intel && device_works; } || no_device
    fi
    device_key >"$VENV/device"
}

no_device() {
    probe || true
    for name in OCL_ICD_VENDORS OPENCL_VENDOR_PATH; do
        eval "value=\${$name:-}"
        # shellcheck disable=SC2154  # set by eval
        [ -z "$value" ] || say "$name=$value hides every other platform; unset it to see them"
    done
    die "no OpenCL device works here. One of these mends it:" \
        "sudo apt-get update && sudo apt-get install pocl-opencl-icd     (any CPU)" \
        "$VENV/bin/pip install -e '.[cpu]'                        (x86-64 CPU, no root needed)" \
        "the OpenCL driver of your GPU" \
        "then run this again; '$VENV/bin/clformats doctor' says more. Log: $LOG"
}

# ---- what the tests use beside it ---------------------------------------------------------------------

has_library() {
    for file in /usr/lib/*/"$1" /usr/lib/"$1" /usr/local/lib/"$1"; do
        [ ! -e "$file" ] || return 0
    done
    return 1
}

# Wanted, not needed: the tests that use them skip and say why.
ensure_peers() {
    missing=""
    has_library libdnnl.so.2 || missing="libdnnl2"
    if [ "$GOAL" = test ]; then
        have oclgrind || missing="$missing oclgrind"
        # A test compiles the example in C against OpenCL.
        have cc || missing="$missing gcc libc6-dev"
        [ -e /usr/include/CL/cl.h ] || missing="$missing opencl-c-headers"
    fi
    [ -n "$missing" ] || return 0
    # Not every release has them: ask once, then leave it until the virtual environment is made anew.
    [ -e "$VENV/no-peers-$GOAL" ] && return 0
    # One by one: one that is missing must not keep the other away.
    for package in $missing; do
        apt_install "the tests use it" "$package" && continue
        say "without $package: tests that need it will be skipped (apt-get install $package)"
        : >"$VENV/no-peers-$GOAL"
    done
}

case $GOAL in
python | docs | demo | bench | test) ;;
*) die "unknown goal '$GOAL'; expected python, docs, demo, bench or test" ;;
esac

ensure_venv
ensure_project
case $GOAL in python | docs) ;; *) ensure_device ;; esac
case $GOAL in bench | test) ensure_peers ;; esac
