# The two commands of the README are `make run` and `make test`. Both work on a machine with
# python3 (3.11 or newer, with venv), make and git, and keep everything inside .venv and build/.
# `make run` installs what a user needs; what developers need besides is installed by the other
# commands. The core (src/core, C++) is compiled by the machine's compiler, or by that of the package
# ziglang, into src/kernelbank, and again when a source of it has changed.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints.txt
COMPILER := $(shell command -v $${CXX:-c++} || command -v g++ || command -v clang++)
CORE := build/core/compiled
CORE_SOURCES := $(shell find src/core -type f)
OUT ?= reproduction
DEMO ?= demo
# Tests and builds start many processes: without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# One job after another: ninja has the processors while pip has the network.
.NOTPARALLEL:
.PHONY: run test test-all attack sanitize lint format bench against bench-run bench-live costs alarms accuracy robust ablation classes forecasts gallery docs wheel wheel-aarch64 release clean

# A stream of sensors, then the paper's experiment in a few lines.
run: .venv/ready $(CORE)
	@$(BIN)/kernelbank demo --out $(DEMO)
	@echo "  So that your shell finds these commands:"
	@echo "    . $(BIN)/activate"
	@echo
	@$(BIN)/kernelbank reproduce --summary --out $(OUT)

# What is quick: no cluster, no browser, no site. `make test-all` has the rest.
test: .venv/test-ready $(CORE)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-all: .venv/dev-ready $(CORE)
	$(BIN)/python -m pytest -n auto --dist loadgroup

# Kills, failing calls, forged files, fuzzed sources and interrupts, for an hour or more.
ATTACK ?= --kills 1000 --faults 300 --forged 100000 --sources 100000 --interrupts 500
attack: .venv/dev-ready $(CORE)
	$(BIN)/python tests/attack.py $(ATTACK)

# The core with checked indices, AddressSanitizer and UBSan (of g++), in a package of links beside
# the other: its tests, the same bits, and forged states. The finder of the editable installation
# comes before PYTHONPATH, so it is taken out there. (test_same_hashes.py compiles programs of its own.)
SANITIZE := build/sanitize
sanitize: .venv/dev-ready
	@rm -rf $(SANITIZE)/package
	@mkdir -p $(SANITIZE)/package
	@cp -rs $(CURDIR)/src/kernelbank $(SANITIZE)/package
	@rm -f $(SANITIZE)/package/kernelbank/_core*.so
	@cp packaging/without_editable.py $(SANITIZE)/package/sitecustomize.py
	@$(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DKERNELBANK_SANITIZE=ON \
		-DCMAKE_CXX_COMPILER=g++ -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
		-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=$(CURDIR)/$(SANITIZE)/package/kernelbank \
		-B $(SANITIZE)/core -S src/core
	@$(BIN)/cmake --build $(SANITIZE)/core
	PYTHONPATH=$(CURDIR)/$(SANITIZE)/package KERNELBANK_FORGED=4000 KERNELBANK_SANITIZED=1 \
		LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
		UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
		$(BIN)/python -m pytest -n auto --dist loadgroup --ignore tests/core/test_same_hashes.py \
		tests/core tests/test_same_bits.py

lint: .venv/dev-ready
	$(BIN)/ruff check src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/ruff format --check src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev-ready
	$(BIN)/ruff check --fix src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/ruff format src tests benchmarks packaging docs/gallery docs/generate

bench: .venv/bench-ready $(CORE)
	DATA=$(DATA) $(BIN)/python benchmarks/speed.py --out bench

# Beside another version: OTHER is the Python of an environment in which it is installed.
against: .venv/ready $(CORE)
	$(BIN)/python benchmarks/against.py $(OTHER)

# What `kernelbank run` costs beside the bank.
bench-run: .venv/dev-ready $(CORE)
	$(BIN)/python benchmarks/run_cost.py

# What the live page costs a run.
bench-live: .venv/dev-ready $(CORE)
	$(BIN)/python benchmarks/live_cost.py

costs: .venv/dev-ready $(CORE)
	$(BIN)/python benchmarks/costs.py --out bench

# AutoBank beside its rivals. DATA is a folder of .csv.gz streams; without it those of River and
# scikit-learn. SET=unseen takes the named benchmarks with which AutoBank's default slots were not
# chosen, from DATA and from packages; SET=seen the others. ONLY names some of them. RIVALS names
# groups of rivals (online, refitted). ROWS=40000 runs long streams only, also those in the folder
# long of DATA, and gives the errors of their last half. OPTIONS go to benchmarks/accuracy.py (see
# --help).
accuracy: OUT := accuracy
accuracy: .venv/bench-ready $(CORE)
	$(BIN)/python benchmarks/accuracy.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(SET),--set $(SET)) $(if $(ONLY),--only $(ONLY)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(RIVALS),--rivals $(RIVALS)) $(OPTIONS)

# Direct forecasts of AutoBank and rivals for 24 horizons. DATA is a folder of .csv.gz streams; without
# it simulated streams only. STREAMS names some of them, RIVALS groups of rivals (naive, direct,
# statsforecast) or single ones. OPTIONS go to benchmarks/forecasts.py (see --help).
forecasts: OUT := forecasts
forecasts: .venv/bench-ready $(CORE)
	$(BIN)/python benchmarks/forecasts.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(STREAMS),--streams $(STREAMS)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(RIVALS),--rivals $(RIVALS)) $(OPTIONS)

# How often AutoBank signals a change where there is none.
alarms: .venv/dev-ready $(CORE)
	$(BIN)/python benchmarks/false_alarms.py

# What spikes in the target, jumps of its level, first rows and late targets do to AutoBank. DATA is a
# folder of .csv.gz streams; OPTIONS go to benchmarks/robust.py (see --help).
robust: .venv/bench-ready $(CORE)
	$(BIN)/python benchmarks/robust.py --data $(DATA) $(if $(ONLY),--only $(ONLY)) $(OPTIONS)

# AutoBank with one part taken out at a time, on the same streams.
ablation: OUT := accuracy
ablation: .venv/bench-ready $(CORE)
	$(BIN)/python benchmarks/ablation.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(SET),--set $(SET)) $(if $(ONLY),--only $(ONLY)) $(if $(ROWS),--rows $(ROWS)) $(OPTIONS)

# AutoBank with more than two classes beside River's models: errors, log loss, calibration and time.
# LETTERS is a CSV file with a label and numbers in each row; OPTIONS go to benchmarks/many_classes.py.
classes: OUT := bench
classes: .venv/bench-ready $(CORE)
	@mkdir -p $(OUT)
	$(BIN)/python benchmarks/many_classes.py --rivals $(OUT)/rivals-classes.json \
		$(if $(LETTERS),--letters $(LETTERS)) $(OPTIONS)

# The figures of docs/gallery, drawn anew. What the scripts print stands in its README.md.
gallery: .venv/dev-ready $(CORE)
	for script in docs/gallery/*.py; do $(BIN)/python $$script || exit 1; done

# The docs site, in site/: open site/index.html. Any warning is an error. (The variable turns off a
# notice of Material about MkDocs 2.)
docs: .venv/dev-ready $(CORE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Built the site: open site/index.html"

# A wheel for this machine's processors, inspected, and tried where there is no compiler.
wheel: .venv/wheel-ready
	$(BIN)/python packaging/check_wheel.py

# The same for Linux on aarch64, compiled here by zig; inspected, not tried.
wheel-aarch64: .venv/zig-ready
	$(BIN)/python packaging/check_wheel.py --machine aarch64

# The source archive and the wheel: built, their metadata checked, each installed and tried.
release: .venv/release-ready
	$(BIN)/python packaging/check_release.py

clean:
	rm -rf .venv dist build src/kernelbank/_core.*.so reproduction demo comparison bench accuracy forecasts site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What compiles the core, and what pip needs to install the package from here.
.venv/tools: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelbank needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Installing into .venv (once; half a minute, as the network allows) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) --no-compile scikit-build-core nanobind cmake ninja $(if $(COMPILER),,ziglang)
	@touch $@

# What users need: the command and figures; the core is compiled meanwhile. Python
# compiles modules when they are first used.
.venv/ready: .venv/tools pyproject.toml
	@$(MAKE) --no-print-directory --silent $(CORE) & compiling=$$!; \
		$(INSTALL) --no-compile --no-build-isolation --editable ".[cli,plot]"; installed=$$?; \
		wait $$compiling && exit $$installed
	@touch $@

build/core/build.ninja: .venv/tools
	@echo "Compiling the core (once; about 45 s) ..."
	@mkdir -p build
	@$(BIN)/cmake --fresh -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
		-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python $(if $(COMPILER),,--toolchain $(CURDIR)/src/core/zig.cmake) \
		-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=$(CURDIR)/src/kernelbank -B build/core -S src/core > build/core.log

$(CORE): build/core/build.ninja $(CORE_SOURCES)
	@$(BIN)/ninja -C build/core --quiet
	@touch $@

# What the quick tests need besides: the libraries that kernelbank works with.
.venv/test-ready: .venv/ready
	@echo "Installing what the tests need into .venv (once) ..."
	@$(INSTALL) --no-compile --no-build-isolation --editable ".[cli,plot,test]"
	@touch $@

# What developers need besides: linters, Ray, a browser's driver, MkDocs and Jupyter.
.venv/dev-ready: .venv/test-ready
	@echo "Installing what linters and slow tests need into .venv (once; more than 1 GB) ..."
	@$(INSTALL) --no-build-isolation --editable ".[cli,plot,test-all,lint]"
	@touch $@

# River, scikit-learn, LightGBM and statsforecast are only for the comparison.
.venv/bench-ready: .venv/dev-ready
	@$(INSTALL) --no-build-isolation --editable ".[bench]"
	@touch $@

.venv/wheel-ready: .venv/tools
	@$(INSTALL) wheel
	@touch $@

.venv/zig-ready: .venv/wheel-ready
	@$(INSTALL) ziglang
	@touch $@

.venv/release-ready: .venv/wheel-ready
	@$(INSTALL) build packaging trove-classifiers
	@touch $@
