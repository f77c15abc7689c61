# Everything rests on `make setup`, which needs python3, python3-venv and make.
.PHONY: setup browser screenshots recording demo test collected dependencies messages nightly check types style docs release audit fuzz mutations lock clean

PYTHON ?= python3
BIN = .venv/bin
# Without bytecode every process would compile all it loads.
unexport PYTHONDONTWRITEBYTECODE

setup: .venv/ready browser

.venv/ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# htmx and Yasgui for the pages and axe-core for their tests, from npm; the pages work without them.
browser: .venv/ready
	$(BIN)/python tools/browser_libraries.py

# The pictures in docs/pages.md; needs Chromium.
screenshots: setup
	SCREENSHOTS=docs/screenshots $(BIN)/pytest -q tests/browser/test_screenshots.py -k taken

# The session in a terminal that README.md shows.
recording: setup
	$(BIN)/python tools/recording.py

demo: setup
	$(BIN)/tamias demo

# Every change: ten minutes. Assertions are rewritten once, beside the checks, not by each process. A file is run
# by one process, so that what its tests share is made once. Three quarters of the time tests wait for something, so
# four processes share a core.
test: setup
	sh tests/system-packages.sh
	$(MAKE) --no-print-directory -j 2 check collected
	$(BIN)/pytest -n 8 --dist loadfile

collected: setup
	$(BIN)/pytest --collect-only -qq >/dev/null

# The unit tests on the oldest dependencies that pyproject.toml allows, or with RESOLUTION=highest on the newest.
RESOLUTION ?= lowest-direct
dependencies: setup
	$(BIN)/pip install --quiet uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/$(RESOLUTION)
	$(BIN)/uv pip install --quiet --python build/$(RESOLUTION) --resolution $(RESOLUTION) --group dev -e .
	build/$(RESOLUTION)/bin/pytest -n 4 --dist loadfile tests/unit

# How messages are worded, in tests/messages.toml, from what the tests get: read the difference before it is committed.
messages: setup
	TAMIAS_MESSAGES=write $(BIN)/pytest -q -n 2 --dist loadfile $$(grep -rlE '(unsaid|saying)\(' tests --include='test_*.py')

# Every night: all tests, property tests with many examples, commands as processes of their own, browser, benchmarks,
# real servers and readers of other projects, clusters. What cannot be had, for want of a network for example, is
# named before the tests and again as skipped after them. `make nightly TESTS=tests/interop` runs a part.
TESTS ?= tests
nightly: setup check
	sh tests/system-packages.sh
	sh tests/nightly-packages.sh
	TAMIAS_NIGHTLY=1 TAMIAS_TEST_PROCESSES=1 $(BIN)/pytest -n 2 --dist loadfile $(TESTS)
	$(BIN)/python tools/without.py

check: types style

types: setup
	$(BIN)/mypy

style: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/python tools/features.py
	$(BIN)/python tools/shadowed_names.py
	$(BIN)/python tools/unreached_names.py
	$(BIN)/python tools/repeated_class_names.py
	$(BIN)/python tools/budget.py >/dev/null

# The documentation as a site, in build/site.
docs: setup
	$(BIN)/python tools/reference.py
	$(BIN)/sphinx-build -q -W --keep-going docs build/site

# The wheel, tried in a bare environment, with an SBOM and the notes of this version, in build/release.
release: setup
	$(BIN)/python tools/release.py

# Known weaknesses of the pinned versions, as the public advisories list them; fails where those cannot be had.
audit: setup
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements/run.txt

# Ten minutes for each parser of bytes from outside, guided by coverage; `make fuzz SECONDS=60 TARGET=url`.
SECONDS ?= 600
fuzz: setup
	$(BIN)/pip install --quiet atheris==3.0.0
	$(BIN)/python tools/fuzz.py $(TARGET) --seconds $(SECONDS)

# Takes out one defence after another, in a copy: each time a test must fail.
mutations: setup
	$(BIN)/python tools/mutations.py

# Made anew after a change of dependencies in pyproject.toml; uv is only needed for this.
lock: setup
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url -o requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url -o requirements/dev.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
