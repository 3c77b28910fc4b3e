#!/bin/sh
# A folder with all that `python -m bench gpu` needs on a machine without network: the library and
# the benchmark, wheels of what they need, the kernels as PTX for a machine without OpenCL, and a
# script that installs and runs it there.
#
#   sh scripts/gpu_folder.sh PYTHON FOLDER
#
# The wheels are for Linux on x86-64 and for Python $FOR_PYTHON, by default 3.12. $PEERS are those to
# compare with: cupy-cuda12x for the PTX; torch is a gigabyte, and often there already.

set -eu
cd "$(dirname "$0")/.."
PYTHON=$1
FOLDER=$2
FOR_PYTHON=${FOR_PYTHON:-3.12}
PEERS=${PEERS-cupy-cuda12x}

mkdir -p "$FOLDER/wheels"
"$PYTHON" -m pip wheel --quiet --no-deps -w "$FOLDER/wheels" .
# shellcheck disable=SC2086  # several words
"$PYTHON" -m pip download --quiet --dest "$FOLDER/wheels" --only-binary=:all: \
    --python-version "$FOR_PYTHON" --implementation cp --platform manylinux2014_x86_64 \
    --platform manylinux_2_28_x86_64 --platform any \
    "$FOLDER"/wheels/clformats-*.whl pip $PEERS
rm -rf "$FOLDER/bench"
cp -r bench "$FOLDER/bench"
find "$FOLDER/bench" -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf "$FOLDER/bench/results"
if "$PYTHON" -m bench gpu --ptx "$FOLDER/ptx"; then :; else
    echo "gpu_folder: without PTX: a machine without OpenCL can run nothing" >&2
fi

cat >"$FOLDER/run.sh" <<'END'
#!/bin/sh
# Install from the wheels, no network, and measure. Further words go to `python -m bench gpu`.
#   sh run.sh [--sweep] [--cases REGEX]
set -eu
cd "$(dirname "$0")"
if [ ! -x venv/bin/python ]; then
    # --system-site-packages: torch, where it is there.
    "${PYTHON:-python3}" -m venv --system-site-packages --without-pip venv
    for pip in wheels/pip-*.whl; do
        for wheel in wheels/clformats-*.whl; do
            venv/bin/python "$pip/pip" install --no-index --find-links wheels "$wheel"
        done
        for wheel in wheels/cupy*.whl; do
            [ ! -e "$wheel" ] || venv/bin/python "$pip/pip" install --no-index --find-links wheels "$wheel"
        done
    done
fi
code=0
venv/bin/python -m bench gpu --json gpu.json --svg gpu.svg --isa gpu.zip "$@" || code=$?
[ "$code" = 2 ] || exit "$code"
echo "run.sh: not by OpenCL; by CUDA:" >&2
exec venv/bin/python -m bench gpu --run-ptx ptx --json gpu-ptx.json --svg gpu-ptx.svg
END
echo "$(du -sh "$FOLDER" | cut -f1) in $FOLDER: copy it there, and: sh run.sh"
