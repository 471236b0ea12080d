# covey. `make demo` shows it at work, `make test` checks it all; both set up what they need.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: setup demo test lint bench fuzz soak network lab clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/covey demo

# Two workers: kernels are compiled once into a cache that they share.
test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m benchmarks

# Many more random filters and events than `make test` tries.
fuzz: setup
	COVEY_FUZZ_ROUNDS=$${COVEY_FUZZ_ROUNDS:-400} COVEY_FUZZ_EXAMPLES=$${COVEY_FUZZ_EXAMPLES:-5000} $(BIN)/python -m pytest tests/matching/test_properties.py

# Three brokers on this machine, until interrupted; `make network EXAMPLE=stock_quotes.py` runs an example against them.
network: setup
	$(BIN)/python examples/network/brokers.py $(EXAMPLE)

# Many more simulated networks with faults than `make test` tries.
soak: setup
	$(BIN)/python -m covey.simulation $${COVEY_SOAK_SEEDS:-10000}

# The diagrams' node counts before and after restriction, at 25,000 to 100,000 queries.
lab: setup
	$(BIN)/python -m benchmarks.diagrams.node_table

clean:
	rm -rf .venv .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
