# make run    set everything up and open the chat at http://127.0.0.1:7860
#             (ARGS="--port 8000" and other settings; PYTHON=... for a certain Python)
# make test   set everything up and run every check and test (ARGS="-k store" for some);
#             make test-long: the few as well that take long and check little that others do not
# make setup  only set up; make lint: only the checks without tests
# make clean  remove the environment and what the checks left behind; no chats, no models

VENV := .venv
PY := $(VENV)/bin/python
RUN_STAMP := $(VENV)/.setup-stamp-run
DEV_STAMP := $(VENV)/.setup-stamp-dev
ARGS ?=

.PHONY: run test test-long setup lint clean

run: setup
	$(PY) app.py $(ARGS)

test: TESTS := -m "not long"
test test-long: lint setup
	@scripts/tools.sh
	@scripts/axe.sh $(VENV)
	$(PY) -m pytest -n logical --maxprocesses 4 --dist loadgroup $(TESTS) $(ARGS)

lint: $(DEV_STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

setup: $(RUN_STAMP)
	$(PY) -m chatbot fetch

$(RUN_STAMP): requirements.txt constraints.txt
	@scripts/install.sh $(VENV) -r requirements.txt
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) requirements-team.txt requirements-dev.txt requirements-dev-nodeps.txt
	@scripts/install.sh $(VENV) -r requirements-dev.txt
	@scripts/install.sh $(VENV) --no-deps -r requirements-dev-nodeps.txt
	@touch $@

clean:
	[ ! -e $(VENV) ] || mv $(VENV) $(VENV).old.clean
	rm -rf $(VENV).old.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
