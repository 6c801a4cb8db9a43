# The two commands of the README are `make run` and `make test`. Both work on a machine with
# python3 (3.11 or newer, with venv), make and git, and keep everything inside .venv. `make run`
# installs what a user needs; what developers need besides is installed by the other commands.
PYTHON ?= python3
BIN := .venv/bin
# Where there is no C compiler, the library is linked by that of this package.
LINKER := $(if $(shell command -v cc),,ziglang)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT ?= reproduction
DEMO ?= demo
# Tests and builds start many processes: without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all attack core lint format bench bench-run bench-live costs alarms accuracy ablation classes forecasts gallery docs wheel release clean

# The paper's experiment, then a stream of sensors.
run: .venv/ready
	@$(BIN)/kernelbank reproduce --out $(OUT)
	@echo
	@$(BIN)/kernelbank demo --out $(DEMO)
	@echo "  So that your shell finds these commands:"
	@echo "    . $(BIN)/activate"

test: .venv/dev-ready
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-all: .venv/dev-ready
	$(BIN)/python -m pytest -n auto --dist loadgroup

# Kills, failing calls, forged files, fuzzed sources and interrupts, for an hour or more.
ATTACK ?= --kills 1000 --faults 300 --forged 100000 --sources 100000 --interrupts 500
attack: .venv/dev-ready
	$(BIN)/python tests/attack.py $(ATTACK)

# The engine in C++ that KernelBank is moving to, built in build/core and compared with the present one.
core: .venv/dev-ready
	@$(PIP) install --constraint constraints.txt nanobind cmake ninja
	@$(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_BUILD_TYPE=None \
		-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -B build/core -S src/core
	@$(BIN)/ninja -C build/core
	$(BIN)/python -m pytest -n auto --dist loadgroup tests/core

lint: .venv/dev-ready
	$(BIN)/ruff check src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/ruff format --check src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev-ready
	$(BIN)/ruff check --fix src tests benchmarks packaging docs/gallery docs/generate
	$(BIN)/ruff format src tests benchmarks packaging docs/gallery docs/generate

bench: .venv/bench-ready
	DATA=$(DATA) $(BIN)/python benchmarks/speed.py --out bench

# What `kernelbank run` costs beside the bank.
bench-run: .venv/dev-ready
	$(BIN)/python benchmarks/run_cost.py

# What the live page costs a run.
bench-live: .venv/dev-ready
	$(BIN)/python benchmarks/live_cost.py

costs: .venv/dev-ready
	$(BIN)/python benchmarks/costs.py --out bench

# AutoBank beside its rivals. DATA is a folder of .csv.gz streams; without it those of River and
# scikit-learn. SET=unseen takes the named benchmarks with which AutoBank's default slots were not
# chosen, from DATA and from packages; SET=seen the others. ONLY names some of them. RIVALS names
# groups of rivals (online, refitted). ROWS=40000 runs long streams only, also those in the folder
# long of DATA, and gives errors by quarter of the stream. OPTIONS go to
# benchmarks/accuracy.py (see --help).
accuracy: OUT := accuracy
accuracy: .venv/bench-ready
	$(BIN)/python benchmarks/accuracy.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(SET),--set $(SET)) $(if $(ONLY),--only $(ONLY)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(RIVALS),--rivals $(RIVALS)) $(OPTIONS)

# Direct forecasts of AutoBank and rivals for 24 horizons. DATA is a folder of .csv.gz streams; without
# it simulated streams only. STREAMS names some of them, RIVALS groups of rivals (naive, direct,
# statsforecast) or single ones. OPTIONS go to benchmarks/forecasts.py (see --help).
forecasts: OUT := forecasts
forecasts: .venv/bench-ready
	$(BIN)/python benchmarks/forecasts.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(STREAMS),--streams $(STREAMS)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(RIVALS),--rivals $(RIVALS)) $(OPTIONS)

# How often AutoBank signals a change where there is none.
alarms: .venv/dev-ready
	$(BIN)/python benchmarks/false_alarms.py

# AutoBank with one part taken out at a time, on the same streams and beside the rivals kept there.
ablation: OUT := accuracy
ablation: .venv/bench-ready
	$(BIN)/python benchmarks/ablation.py --out $(OUT) $(if $(DATA),--data $(DATA)) \
		$(if $(SET),--set $(SET)) $(if $(ONLY),--only $(ONLY)) $(if $(ROWS),--rows $(ROWS)) \
		$(if $(RIVALS),--rivals $(RIVALS)) $(OPTIONS)

# AutoBank with more than two classes beside River's models: errors, log loss, calibration and time.
# LETTERS is a CSV file with a label and numbers in each row; OPTIONS go to benchmarks/many_classes.py.
classes: OUT := bench
classes: .venv/bench-ready
	@mkdir -p $(OUT)
	$(BIN)/python benchmarks/many_classes.py --rivals $(OUT)/rivals-classes.json \
		$(if $(LETTERS),--letters $(LETTERS)) $(OPTIONS)

# The figures of docs/gallery, drawn anew. What the scripts print stands in its README.md.
gallery: .venv/dev-ready
	for script in docs/gallery/*.py; do $(BIN)/python $$script || exit 1; done

# The docs site, in site/: open site/index.html. Any warning is an error. (The variable turns off a
# notice of Material about MkDocs 2.)
docs: .venv/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Built the site: open site/index.html"

# A wheel with the compiled library, inspected and tried where there is neither Numba nor a compiler.
wheel: .venv/ready
	$(BIN)/python packaging/check_wheel.py

# The source archive and the wheel: built, their metadata checked, each installed and tried.
release: .venv/release-ready
	$(BIN)/python packaging/check_release.py

clean:
	rm -rf .venv dist build src/kernelbank/native/lib reproduction demo comparison lorenz bench accuracy forecasts site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What users need: the command, figures, the live page, and Numba to build the compiled library, which
# rebuilds itself when a source of it has changed. Python compiles modules when they are first used.
.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelbank needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Installing into .venv (once; half a minute, as the network allows) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --no-compile --constraint constraints.txt --editable ".[cli,plot,live,jit]" $(LINKER)
	@KERNELBANK_NATIVE=jit $(BIN)/python -m kernelbank.native.build
	@touch $@

# What developers need besides: tests, linters, and the libraries that kernelbank works with.
.venv/dev-ready: .venv/ready
	@echo "Installing what the tests and the linters need into .venv (once; more than 1 GB) ..."
	@$(PIP) install --constraint constraints.txt --editable ".[cli,plot,live,test,lint]"
	@touch $@

# River, scikit-learn, LightGBM, statsforecast and gcc are only for the comparison.
.venv/bench-ready: .venv/dev-ready
	@$(PIP) install --constraint constraints.txt --editable ".[bench]"
	@touch $@

# MkDocs and Jupyter are only for the docs site.
.venv/docs-ready: .venv/dev-ready
	@$(PIP) install --constraint constraints.txt --editable ".[docs]"
	@touch $@

.venv/release-ready: constraints.txt
	@$(PYTHON) -m venv .venv
	@$(PIP) install --constraint constraints.txt build packaging trove-classifiers
	@touch $@
