# covey. `make demo` shows it at work, `make test` checks it all; both set up what they need.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: setup demo test lint bench fuzz soak network lab lab-quick clean docs

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

# The pages as a site in build/site. docs/cli.md and the limits of docs/operations.md are made from the code first.
docs: setup
	$(BIN)/python -m tests.docs.generated
	$(BIN)/mkdocs build --strict --quiet

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

# The papers' tables and figures at full size, some half an hour on two cores; the page goes to docs/lab. What is
# finished is kept in .covey-lab: run it again to go on.
lab: setup
	$(BIN)/covey lab run --report docs/lab

# The same at a hundredth of the size, in about two minutes.
lab-quick: setup
	$(BIN)/covey lab run --scale 0.01 --report lab-report

clean:
	rm -rf .venv .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
