# The front door. Every target is a thin call of a script or of CMake; `make help` lists them.
.DEFAULT_GOAL := build
.PHONY: help packages build demo demo-torch test test-long bench format lint env pin install clean

PREFIX ?= /usr/local
BUILD_TYPE ?= RelWithDebInfo
STAGE ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages: ## install the Debian packages that are missing (scripts/packages.txt)
	@scripts/packages.sh

build: packages ## the library, the command line build/bin/tornasole, the tests and the examples
	@cmake --preset release -DCMAKE_BUILD_TYPE=$(BUILD_TYPE)
	@cmake --build --preset release

demo: packages ## train a small network, capture it, look at what was captured (build/demo/run)
	@cmake --preset release -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) > /dev/null
	@cmake --build --preset release --target tornasole_demo tornasole_cli
	@scripts/demo.sh build/bin build/demo

demo-torch: build ## the same network in PyTorch and in libtorch, captured, and where a port goes wrong (build/demo-torch)
	@scripts/packages.sh adapters
	@scripts/env.sh torch > /dev/null
	@scripts/demo_torch.sh build build/demo-torch

test: packages ## every check that a change has to pass; STAGE=name[,name] for some of them
	@scripts/test.py $(if $(STAGE),--stages $(STAGE))

test-long: packages ## the tests labelled long, and ten minutes of each fuzz target
	@scripts/test.py --long

# What cannot be had here is left out, and named below the table.
BENCH_ENVIRONMENTS = bench torch tensorflow tensorflow-legacy xgboost-old mxnet tensorboard s3

bench: build ## measure beside the peers, with the environments of all frameworks
	@scripts/env.sh smdebug
	@for name in $(BENCH_ENVIRONMENTS); do scripts/env.sh $$name || true; done
	@.venvs/smdebug/bin/python bench/run.py --bin build/bin

format: packages ## lay out all C++ files
	@scripts/format.sh

lint: packages ## clang-tidy over src/
	@cmake --preset release > /dev/null
	@scripts/lint.py build

env: packages ## make the Python environment .venvs/NAME: make env NAME=smdebug
	@scripts/env.sh $(NAME)

pin: packages ## write requirements/NAME.txt anew from requirements/NAME.in
	@scripts/pin.sh $(NAME)

install: build ## library, headers, CMake package, command line under PREFIX (/usr/local); DESTDIR works
	@cmake --install build --prefix $(PREFIX)

clean: ## remove what was built; Python environments stay
	@rm -rf build
