# covey. `make demo` shows it at work, `make test` checks it; both set up what they need.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Tests start hundreds of Pythons: each would read every source anew where the machine says to keep no bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup jars demo test test-core test-long lint bench fuzz soak soak-broker attack network lab lab-quick clean docs

setup: $(STAMP)

# The constraints hold for what builds covey too, so that kernels are compiled by the Numba that will load them.
$(STAMP): pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

# Kafka and Spark's connector for it, for tests; they fetch it themselves where it is missing.
jars: setup
	$(BIN)/python -m tools.jars

demo: setup
	$(BIN)/covey demo

# All but what takes minutes by itself. Two processes more than two cores, since some wait for brokers and for Java:
# tests/dealing.py says which tests are where.
test: setup lint
	$(BIN)/python -m pytest -n 4 -m "not long"

# What needs neither Spark nor a browser nor sockets nor the laboratory, with a share of the random examples.
test-core: setup
	COVEY_EXAMPLES=$${COVEY_EXAMPLES:-0.1} $(BIN)/python -m pytest -n 2 -m core

test-long: setup
	$(BIN)/python -m pytest -n 4 -m long

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pages as a site in build/site. docs/cli.md and parts of other pages are made from the code first.
docs: setup
	$(BIN)/python -m tools.docs
	$(BIN)/mkdocs build --strict --quiet

# The whole page, from one commit; PARTS="engines,sigma" for some of it.
bench: setup
	$(BIN)/python -m benchmarks.page $(if $(PARTS),--parts $(PARTS))

# Many more random filters and events than `make test` tries.
fuzz: setup
	COVEY_FUZZ_ROUNDS=$${COVEY_FUZZ_ROUNDS:-400} COVEY_FUZZ_EXAMPLES=$${COVEY_FUZZ_EXAMPLES:-5000} $(BIN)/python -m pytest tests/matching/test_properties.py

# Three brokers on this machine, until interrupted; `make network EXAMPLE=stock_quotes.py` runs an example against them.
network: setup
	$(BIN)/python examples/network/brokers.py $(EXAMPLE)

# Many more simulated networks with faults than `make test` tries.
soak: setup
	$(BIN)/python -m covey.simulation $${COVEY_SOAK_SEEDS:-10000}

# Clients that mean harm, or merely a lot, at full size: a table of what a bystander saw. ATTACK="small subscribes" for one.
attack: setup
	$(BIN)/python -m tests.attacks $(if $(ATTACK),"$(ATTACK)")

# Half an hour of clients that come and go, after which a broker holds no more than before.
soak-broker: setup
	$(BIN)/python -m tests.attacks.soak $(COVEY_SOAK_MINUTES)

# The papers' tables and figures at full size, some half an hour on two cores; the page goes to docs/lab. What is
# finished is kept in .covey-lab: run it again to go on.
lab: setup
	$(BIN)/covey lab run --report docs/lab

# The same at a hundredth of the size, in some minutes.
lab-quick: setup
	$(BIN)/covey lab run --scale 0.01 --report lab-report

clean:
	rm -rf .venv .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
