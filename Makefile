# The commands of this project; CI calls the same ones. They need Python >= 3.11 and a Rust toolchain;
# everything else is installed into .venv.
PYTHON ?= python3
export CARGO_TARGET_DIR ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/deltaic/target
# Tests and benches start Python hundreds of times, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs')
TESTS ?=
VERSION ?=
ON_SPARK = tests/spark tests/spark_sql/test_spark_refuses.py
# Compiled fuzz targets, their seeds, and the inputs that they found. They are kept, so that each run
# continues where the last one ended. Each run also begins with the inputs in fuzz/corpora, which `cargo test`
# gives to every parser.
FUZZ = $(abspath $(CARGO_TARGET_DIR)/../fuzz)
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/targets/*.rs)))
SPARK_VENV = .venv-spark-$(VERSION)
.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-embedded test-on-spark test-spark fuzz bench
.PHONY: lint wheel build docs deny clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: $(if $(wildcard .venv/built),.venv/built,.venv/for-demo) ## a demo on 336,776 flights; DuckDB checks every number
	$(BIN)/python examples/demo.py

test: .venv/built ## all tests, Rust and Python; some Python tests: TESTS="tests/test_x.py -k name"
ifeq ($(TESTS),)
	cargo test --locked --release --no-default-features
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-embedded test-on-spark
else
	$(BIN)/python -m pytest -q $(TESTS)
endif

test-quick: .venv/built ## Python tests without Spark and servers that take little time: under two minutes
	$(BIN)/python -m pytest -q -m "not spark and not slow" --ignore=tests/spark

# The two parts of the Python tests. They take about the same time, and each uses little more than one core.
test-embedded: .venv/built
	$(BIN)/python -m pytest -q --durations=20 $(addprefix --ignore=,$(ON_SPARK))

test-on-spark: .venv/built
	$(BIN)/python -m pytest -q --durations=20 $(ON_SPARK)

test-spark: .venv/built ## tests/spark on another PySpark, in its own environment: VERSION=4.1
	@[ -n "$(VERSION)" ] || { echo 'which PySpark? make test-spark VERSION=4.1'; exit 2; }
	[ -x $(SPARK_VENV)/bin/python ] || $(PYTHON) -m venv $(SPARK_VENV)
	rm -rf $(SPARK_VENV)/wheels
	$(BIN)/maturin build --locked --release --out $(SPARK_VENV)/wheels
	$(SPARK_VENV)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(SPARK_VENV)/bin/python -m pip install --quiet --group spark 'pyspark[connect]==$(VERSION).*' $(SPARK_VENV)/wheels/*.whl
	$(SPARK_VENV)/bin/python -m pip install --quiet --force-reinstall --no-deps $(SPARK_VENV)/wheels/*.whl
	$(SPARK_VENV)/bin/python -m pytest -q $(or $(TESTS),tests/spark)

fuzz: .venv/built ## hostile bytes for every parser of the core (needs cargo-fuzz and a nightly Rust)
	$(BIN)/python scripts/write_fuzz_seeds.py $(FUZZ)/seeds
	CARGO_TARGET_DIR=$(FUZZ) cargo +nightly fuzz build
	@failed=; for target in $(FUZZ_TARGETS); do \
		mkdir -p $(FUZZ)/corpus/$$target && echo "== $$target" && \
		CARGO_TARGET_DIR=$(FUZZ) cargo +nightly fuzz run $$target \
			$(FUZZ)/corpus/$$target fuzz/corpora/$$target $(FUZZ)/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
			|| failed="$$failed $$target"; \
	done; [ -z "$$failed" ] || { echo "findings of$$failed: see fuzz/artifacts"; exit 1; }

bench: .venv/built ## measures deltaic beside other libraries, and writes benches/records
	cargo bench --locked --no-default-features
	$(BIN)/python -m benches
	$(BIN)/python scripts/draw_benchmarks.py

lint: .venv/built ## formatting, lints, types
	cargo fmt --check
	cargo clippy --locked --release --no-default-features --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/user_program.py

wheel: .venv/ready ## an abi3 wheel in dist/, tried in a clean environment without Rust
	rm -rf dist
	$(BIN)/maturin build --locked --release --out dist
	$(PYTHON) packaging/check_wheel.py dist

build: .venv/built ## the extension in release mode, in place

docs: .venv/ready ## the documentation site in site/; a broken link fails
	$(BIN)/python -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

deny: ## licences, advisories and sources of the crates (needs cargo-deny)
	cargo deny --locked check

clean: ## deletes the environments; compiled code stays in CARGO_TARGET_DIR
	rm -rf .venv .venv-spark-* dist site python/deltaic/*.so

.venv/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed: make PYTHON=python3.12")'
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

.venv/ready: pyproject.toml .venv/pip
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

.venv/built: .venv/ready $(RUST)
	$(BIN)/maturin develop --locked --release
	@touch $@

# A first look: the packages of the demo alone, and the extension without optimizations. Compiling it takes
# 5.5 minutes of CPU time instead of 13.5. `make build` replaces it.
.venv/for-demo: .venv/pip $(RUST)
	$(BIN)/python -m pip install --quiet --group demo
	$(BIN)/maturin develop --locked --profile demo --group demo
	@touch $@
