# make demo | examples | docs | test | test-all | record | bench | exact | operators | platforms | wild | clean | volume | transformations | test-libraries | test-matrix.
# make test-all with new random examples: JAXTE_HYPOTHESIS=full make test-all
PYTHON ?= python3
VENV   ?= .venv
WORKERS ?= 2
# options of `make bench`: SUITE=--quick for small sizes, SUITE=--write to renew docs/performance.md and docs/corpus.md
SUITE ?=
# options of `make wild`, as in WILD="--missing" or WILD="pix_ssim euler_by_rolls"
WILD ?=
# random programs of `make volume`, and its options, as in VOLUME='--kind second --workers 2'
COUNT ?= 1000
VOLUME ?=
# options of `make exact`
EXACT ?=
# platforms of `make platforms`, and its options, as in COMPILED='--group corpus'
PLATFORMS ?= gpu tpu
COMPILED ?=
# releases of JAX for `make test-matrix`; those from 0.11 on need Python 3.12
MATRIX ?= 0.10 0.11 0.12
PYTHON312 ?= python3.12

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# bytecode is kept, in `make demo` and in tests alike
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo examples docs test test-all record lint mypy pyright bench exact operators platforms wild clean volume transformations test-libraries test-matrix

demo: $(VENV)/.examples
	$(BIN)/python examples/digits.py

examples: $(VENV)/.examples
	$(BIN)/python examples/residual_digits.py
	$(BIN)/python examples/window_transformer.py
	$(BIN)/python examples/equinox_layers.py

# the site, strictly, into build/site; the notebooks run while it is built
docs: $(VENV)/.docs
	$(BIN)/python docs/write_ops.py
	$(BIN)/python -m mkdocs build --strict

# what takes less than 0.2 seconds, and a third of each grid (tests/tiers.py)
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m tier1

# everything; its last lines say how much XLA compiled, which grows as what is emitted departs from the record
test-all: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

# everything, and what the next runs need not find out again: programs that NumPy may run, what XLA counts, and the seconds of tests
record: export JAXTE_COUNTS = $(CURDIR)/build/counts.jsonl
record: export JAXTE_VALUES = $(CURDIR)/build/values.txt
record: $(VENV)/.test
	mkdir -p build && rm -f $(JAXTE_COUNTS) $(JAXTE_VALUES)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --junitxml=build/tests.xml $(TESTS)
	$(BIN)/python -m tests.numpy_programs $(JAXTE_VALUES)
	$(BIN)/python -m tests.xla_counts $(JAXTE_COUNTS)
	$(BIN)/python -m tests.tiers build/tests.xml

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory -j 2 mypy pyright

mypy: $(VENV)/.test
	$(BIN)/mypy

pyright: $(VENV)/.test
	$(BIN)/basedpyright --pythonpath $(BIN)/python

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/emitted.py
	$(BIN)/python benchmarks/raising.py
	$(BIN)/python benchmarks/suite.py $(SUITE)
	$(BIN)/python benchmarks/suite.py --corpus $(SUITE)

# how far values and gradients are from float64, beside plain JAX: renews docs/exactness.md and the column "exact" of the other pages;
# EXACT=--missing, EXACT="--group sums", EXACT="conv2d prod"
exact: $(VENV)/.bench
	$(BIN)/python benchmarks/exact $(EXACT)

# ONLY=--slow: the rows that missed their goal; ONLY="prod conv1d": some operators
operators: $(VENV)/.bench
	$(BIN)/python benchmarks/operators $(ONLY)

# XLA's own compilers for a GPU and a TPU that need not be there, each in an environment of its own (7 GB in all): renews docs/platforms.md
platforms:
	@set -e; for platform in $(PLATFORMS); do \
	  test -x build/$$platform/bin/python || $(PYTHON) -m venv build/$$platform; \
	  plugin=cuda12; test $$platform = gpu || plugin=tpu; \
	  build/$$platform/bin/python -m pip --disable-pip-version-check install --quiet -e ".[draw]" "jax[$$plugin]==0.10.*"; \
	  build/$$platform/bin/python benchmarks/platforms --platform $$platform $(COMPILED); \
	done

# losses of 25 libraries and threads of their users, beside jax.grad, in an environment of its own (2 GB): renews docs/wild.md
wild:
	@test -x build/wild/bin/python || $(PYTHON) -m venv build/wild
	build/wild/bin/python -m pip --disable-pip-version-check install --quiet -e . -r benchmarks/wild/requirements.txt
	build/wild/bin/python benchmarks/wild $(WILD)

# random programs by seed, each beside the interpreter and differences
volume: $(VENV)/.test
	$(BIN)/python -m tests.volume $(COUNT) $(VOLUME)

# twelve functions under fifty transformations, beside plain JAX: renews docs/transformations.md
transformations: $(VENV)/.test
	$(BIN)/python -m tests.transformations.grid --write

# solvers of diffrax, optimistix, jaxopt and lineax on functions of te
test-libraries: $(VENV)/.test $(VENV)/.test-libraries
	$(BIN)/python -m pytest tests/libraries

# the tests of what touches JAX and the grid, on each release of JAX
test-matrix:
	@set -e; for release in $(MATRIX); do \
	  python=$(PYTHON312); test $$release != 0.10 || python=$(PYTHON); \
	  $$python -m venv $(VENV)-jax-$$release; \
	  $(VENV)-jax-$$release/bin/python -m pip install --quiet -e '.[test]' "jax==$$release.*" "jaxlib==$$release.*"; \
	  $(VENV)-jax-$$release/bin/python -m pytest -n $(WORKERS) tests/bridge; \
	  $(VENV)-jax-$$release/bin/python -m tests.transformations.grid; \
	done

clean:
	rm -rf $(VENV) $(VENV)-jax-* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find jaxte tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra: an install runs again only after pyproject.toml changed.
# The install is editable, so the code itself needs none.
$(VENV)/.test $(VENV)/.test-libraries $(VENV)/.examples $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml $(VENV)/.made
	$(PIP) -e '.[$*]'
	touch $@

# bin/python is a link whose time is that of the system's Python; hence a stamp here too.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jaxte needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@
