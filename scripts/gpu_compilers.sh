#!/bin/sh
# The compilers that look at the kernels for GPUs: NVIDIA's, AMD's and Intel's. None needs a GPU.
#
#   sh scripts/gpu_compilers.sh PYTHON    PYTHON: that of the virtual environment
#
# Each is wanted, not needed: tests skip, and name the package, where one is missing.

set -eu
PYTHON=$1

wanted=""
command -v clang-15 >/dev/null || wanted="clang-15"
[ -n "${CLFORMATS_LIBCLC:-}" ] || [ -d /usr/lib/clc ] || wanted="$wanted libclc-15"
command -v ocloc >/dev/null || wanted="$wanted intel-opencl-icd"
command -v cc >/dev/null || wanted="$wanted gcc libc6-dev"
for package in $wanted; do
    apt-get install -y --no-install-recommends "$package" ||
        echo "without $package: some tests will be skipped" >&2
done

# ptxas is on the path where CUDA is installed; both are wheels.
for pair in ptxas:nvidia-cuda-nvcc nvdisasm:nvidia-cuda-nvdisasm; do
    command -v "${pair%%:*}" >/dev/null || "$PYTHON" -m pip install --quiet "${pair#*:}" ||
        echo "without ${pair#*:}: some tests will be skipped" >&2
done
