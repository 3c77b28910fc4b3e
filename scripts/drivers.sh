#!/bin/sh
# Other OpenCL drivers than this machine's, in a Debian 13 root of their own: PoCL 6.0 and Mesa's rusticl.
#
#   sh scripts/drivers.sh make            the root, in build/drivers (1.6 GB, two minutes)
#   sh scripts/drivers.sh run COMMAND...  in the root, in this folder; `run bash` to look around
#   sh scripts/drivers.sh test [PYTEST ARGUMENTS]
#                                         the fast tests of devices, random reorders and the fuzz, on
#                                         every driver (DRIVERS="pocl rusticl both intel")
#
# Needs root, for chroot and mounts, which no other process sees and which end with the command, and
# mmdebstrap. "both" has PoCL and rusticl at once. Intel's runtime is tested outside of the root, in .venv.
# The figures go to build/drivers/DRIVER.log; what was found stands in docs/drivers.md.
# FUZZ is the number of cases of the fuzz (500), RANDOM_REORDERS that of random reorders (100).

set -eu
cd "$(dirname "$0")/.."

HERE=$(pwd)
FOLDER=$HERE/build/drivers
ROOT=$FOLDER/debian13
SUITE=trixie
PACKAGES=python3,python3-venv,ca-certificates,ocl-icd-libopencl1,pocl-opencl-icd,mesa-opencl-icd

say() { printf 'drivers: %s\n' "$*"; }
die() {
    printf 'drivers: error: %s\n' "$*" >&2
    exit 1
}

# A command in the root, where this folder has the path that it has outside.
run() {
    command -v unshare >/dev/null || die "unshare is missing (apt-get install util-linux)"
    # shellcheck disable=SC2016  # for the inner shell
    ROOT=$ROOT HERE=$HERE unshare --mount --propagation private sh -c '
        set -eu
        mount -t proc proc "$ROOT/proc"
        for part in sys dev; do mount --rbind "/$part" "$ROOT/$part"; done
        for part in ssl/certs resolv.conf; do mount --bind "/etc/$part" "$ROOT/etc/$part"; done
        mkdir -p "$ROOT$HERE"
        mount --bind "$HERE" "$ROOT$HERE"
        exec chroot "$ROOT" env --chdir="$HERE" PATH=/venv/bin:/usr/bin:/bin HOME=/root "$@"
    ' sh "$@"
}

make_root() {
    if [ "$(cat "$ROOT/made" 2>/dev/null)" != "$PACKAGES" ]; then
        [ "$(id -u)" = 0 ] || die "making and entering a root needs root (sudo sh scripts/drivers.sh ...)"
        command -v mmdebstrap >/dev/null || die "mmdebstrap is missing (apt-get install mmdebstrap)"
        say "making a Debian 13 root in $ROOT"
        mkdir -p "$FOLDER"
        rm -rf "$ROOT"
        mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$SUITE" "$ROOT"
        printf '%s' "$PACKAGES" >"$ROOT/made"
    fi
    # The project's dependencies, and what the tests need; again where they changed.
    want=$(cat pyproject.toml)
    [ "$(cat "$ROOT/installed" 2>/dev/null)" = "$want" ] && return 0
    say "installing the project's dependencies and the tests' in it"
    run python3 -m venv /venv
    run pip install --quiet --disable-pip-version-check -e '.[test]'
    printf '%s' "$want" >"$ROOT/installed"
}

case ${1:-} in
make) make_root ;;
run)
    shift
    make_root
    run "$@"
    ;;
*) die "expected make, run COMMAND or test, got '${1:-}'" ;;
esac
