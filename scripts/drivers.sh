#!/bin/sh
# Other OpenCL drivers than this machine's, in a Debian 13 root of their own: PoCL 6.0 and Mesa's rusticl.
#
#   sh scripts/drivers.sh make            the root, in build/drivers (2.1 GB, two minutes)
#   sh scripts/drivers.sh run COMMAND...  in the root, in this folder; `run bash` to look around
#   sh scripts/drivers.sh test [PYTEST ARGUMENTS]
#                                         the fast tests of devices, random reorders and the fuzz, on
#                                         each of DRIVERS ("pocl rusticl both")
#
# Needs root, for chroot and mounts, which no other process sees and which end with the command, and
# mmdebstrap. "both" has PoCL and rusticl at once and tests PoCL. Intel's runtime needs no root:
# CLFORMATS_TEST_DEVICE=Intel make test. The figures go to build/drivers/DRIVER.log; what was found stands in
# docs/drivers.md. CLFORMATS_FUZZ_CASES (500) and CLFORMATS_TEST_EXAMPLES (100) say how many random cases.

set -eu
cd "$(dirname "$0")/.."

HERE=$(pwd)
FOLDER=$HERE/build/drivers
ROOT=$FOLDER/debian13
SUITE=trixie
PACKAGES=python3,python3-venv,ca-certificates,g++,opencl-c-headers,ocl-icd-libopencl1,pocl-opencl-icd,mesa-opencl-icd

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

# The tests on one driver, others hidden unless it is "both".
test_driver() {
    driver=$1
    shift
    vendors=/etc/OpenCL/vendors device=Portable
    case $driver in
    pocl) vendors=$vendors/pocl.icd ;;
    rusticl) vendors=$vendors/rusticl.icd device=rusticl ;;
    both) ;;
    *) die "unknown driver '$driver'; expected pocl, rusticl or both" ;;
    esac
    say "$driver (log: $FOLDER/$driver.log)"
    : >"$FOLDER/$driver.log"
    status=0
    for part in tests/*/; do
        [ "$part" = tests/slow/ ] || tested "$part" "device and not slow" "$@" || status=1
    done
    tested tests/slow/test_random.py "" "$@" || status=1
    return $status
}

# One folder or file, by a process of its own: what ends it costs no others.
tested() {
    part=$1 mark=$2
    shift 2
    code=0
    run env RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS="$vendors" CLFORMATS_TEST_DEVICE="$device" \
        CLFORMATS_FUZZ_CASES="${CLFORMATS_FUZZ_CASES:-500}" \
        CLFORMATS_TEST_EXAMPLES="${CLFORMATS_TEST_EXAMPLES:-100}" \
        python -m pytest -p no:cacheprovider -m "$mark" "$part" "$@" >"$FOLDER/$driver.part" 2>&1 || code=$?
    cat "$FOLDER/$driver.part" >>"$FOLDER/$driver.log"
    [ $code = 5 ] && return 0 # it has no such tests
    say "$driver $part $(tail -n 1 "$FOLDER/$driver.part")"
    return $code
}

case ${1:-} in
test)
    shift
    make_root
    failed=0
    for one in ${DRIVERS:-pocl rusticl both}; do test_driver "$one" "$@" || failed=1; done
    exit $failed
    ;;
make) make_root ;;
run)
    shift
    make_root
    run "$@"
    ;;
*) die "expected make, run COMMAND or test, got '${1:-}'" ;;
esac
