# Everything a newcomer needs. `make` alone prints this list.
#   make demo IMAGE=/path/photo.jpg     the demo on your own picture
#   make test PYTEST="-k icd -x"        more arguments for pytest
#   make test-slow TESTS=tests/kernels  one part of the slow tier
#   make gpu-folder FOLDER=gpu          where that is put
#   make demo PYTHON=python3.12         another Python for the virtual environment

SHELL   := /bin/sh
BIN     := .venv/bin
PYTHON  ?= python3
IMAGE   ?=
PYTEST  ?=
TESTS   ?= tests
FOLDER  ?= build/gpu
# Two processes: what a small CI machine has. pocl itself starts a thread per core.
WORKERS ?= 2
SETUP   := PYTHON="$(PYTHON)" sh scripts/setup.sh
# Bytecode is kept, whatever the environment says: hundreds of processes of the tests load the package.
export PYTHONDONTWRITEBYTECODE :=
# Folders that exist; bench/ and examples/ come and go.
CODE    := $(wildcard clformats tests bench examples)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-lowest test-gpu-static test-drivers gpu-folder lint format bench docs doctor clean

help:  ## this list
	@echo "clformats: memory formats of DNN tensors on OpenCL devices"; echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r a b; do printf '%-18s %s\n' "$$a" "$$b"; done

demo:  ## set up what is needed and run the main job on a real photograph (IMAGE=... for yours)
	@$(SETUP) demo
	@$(BIN)/clformats demo $(if $(IMAGE),--image "$(IMAGE)")

test:  ## set up what is needed, then lint, types and every test but the slow ones
	@$(SETUP) test
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python -m pytest -n $(WORKERS) $(TESTS) $(PYTEST)

test-slow:  ## the slow tier: sanitiser, big sizes, long random runs
	@$(SETUP) test
	@$(BIN)/python -m pytest -m slow $(TESTS) $(PYTEST)

test-lowest:  ## the fast tests with the oldest dependencies that pyproject.toml allows
	@PYTHON="$(PYTHON)" sh scripts/lowest.sh -n $(WORKERS) $(TESTS) $(PYTEST)

test-gpu-static:  ## what NVIDIA's, AMD's and Intel's compilers make of the GPU kernels; needs no GPU
	@$(SETUP) test
	@sh scripts/gpu_compilers.sh $(BIN)/python
	@$(BIN)/python -m pytest -m slow tests/slow/test_gpu_compilers.py tests/slow/test_gpu_accesses.py $(PYTEST)

test-drivers:  ## the tests of devices on PoCL 6.0 and rusticl, in a Debian 13 root (needs root, mmdebstrap)
	@sh scripts/drivers.sh test $(PYTEST)

gpu-folder:  ## all that `python -m bench gpu` needs on a machine without network, in FOLDER
	@$(SETUP) python
	@sh scripts/gpu_folder.sh $(BIN)/python "$(FOLDER)"

lint:  ## ruff check, ruff format --check, mypy strict
	@$(SETUP) python
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy $(CODE)

format:  ## let ruff format the code and mend what it can
	@$(SETUP) python
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

bench:  ## GB/s of every case beside a plain copy and oneDNN
	@$(SETUP) bench
	@$(BIN)/python -m bench

docs:  ## the documentation as a site, in build/site, its links checked
	@$(SETUP) docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "open build/site/index.html"

doctor:  ## which OpenCL devices are visible, what is wrong, and what mends it
	@$(SETUP) python
	@$(BIN)/clformats doctor

clean:  ## remove the virtual environment and everything that tools left behind
	rm -rf .venv .venv-lowest build dist out .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
