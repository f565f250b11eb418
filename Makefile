# Everything sets itself up: `make demo` and `make test` need Python >= 3.10, make and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo

.PHONY: demo test test-slow test-paper browser lint docs format clean attack mutants

# torch comes first and alone, so that nothing else can ask for a larger build of it. The demo does not wait for what only
# developers need.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@date +%s > $(VENV)/.started
	@echo "1/2 installing PyTorch, which takes longest; once only"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	@echo "2/2 installing dualogic and what the demo draws with; $$(($$(date +%s) - $$(cat $(VENV)/.started))) s so far"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo,lint,rules]'
	@echo "set up in $$(($$(date +%s) - $$(cat $(VENV)/.started))) s"
	touch $(DEMO)

$(READY): $(DEMO) paper/pyproject.toml
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable paper
	touch $(READY)

demo: $(DEMO)
	$(BIN)/dualogic demo

# The library's tests. Those that take long by themselves, and those of the paper's reproduction, are apart.
test: $(READY)
	$(BIN)/python -m pytest -n 2 -m 'not slow'

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

test-paper: $(READY)
	cd paper && ../$(BIN)/python -m pytest -n 2

# For the tests of the report, which are skipped without a Chromium; on Debian, as root.
browser:
	command -v chromium-headless-shell || command -v chromium || \
		(apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell)

# Random and hostile inputs at length, about an hour; how many of each is said by --formulas, --rule-sets, --kills and --inputs.
attack: $(READY)
	$(BIN)/python tests/attacks/run.py $(ATTACK)

# Small faults of the source, which the tests must find.
mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python tests/attacks/mutants.py $(MUTANTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Pages are in site/. Not --quiet: it would hide warnings from --strict. The variable silences a notice about other software.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
