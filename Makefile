# Everything rests on `make setup`, which needs python3, python3-venv and make.
.PHONY: setup browser screenshots demo test once-more check docs interop cluster-test release audit fuzz mutations lock clean

PYTHON ?= python3
BIN = .venv/bin

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

demo: setup
	$(BIN)/tamias demo

# File by file, so that what the tests of a file share is made once. Half of the time tests wait for something,
# so two processes share a core.
test: setup check
	sh tests/system-packages.sh
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder || $(MAKE) once-more

# Real servers on busy machines: what failed is run once more, alone, and must pass then.
once-more:
	$(BIN)/pytest --last-failed --last-failed-no-failures none

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
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

# Readers of other hands for what we write, and real servers for what we read (docs/harvesters.md). hdt builds from
# source for minutes, so this is no part of `make test`.
interop: setup
	$(BIN)/pip install --quiet wheel "setuptools<81" pybind11
	$(BIN)/pip install --quiet --no-build-isolation --no-deps hdt==2.3
	$(BIN)/pip install --quiet wacz==0.6.0 bagit==1.9.0 datacite==1.4.1
	$(PYTHON) -m venv .venv/crates
	.venv/crates/bin/pip install --quiet rocrate==0.16.0 roc-validator==0.13.0
	$(PYTHON) -m venv .venv/croissant
	.venv/croissant/bin/pip install --quiet mlcroissant==1.1.1
	$(PYTHON) -m venv .venv/pywb
	.venv/pywb/bin/pip install --quiet pywb==2.9.1 "setuptools<81"
	test -d /usr/lib/postgresql/15 || apt-get -qq install --no-install-recommends postgresql-15
	$(BIN)/pip install --quiet aiosmtpd==1.4.6
	command -v promtool >/dev/null || apt-get -qq install --no-install-recommends prometheus
	command -v rapper >/dev/null || apt-get -qq install --no-install-recommends raptor2-utils
	TAMIAS_INTEROP=1 $(BIN)/pytest tests/interop tests/hostile/test_hostile_web.py tests/integration/serve/test_warc_replay.py tests/integration/strategy/test_escapes.py tests/integration/archive/test_repack.py tests/integration/archive/test_forget_crawled.py tests/integration/crawl/test_snapshots.py tests/integration/crawl/test_crawl_noise.py tests/integration/database/test_upgrades.py tests/unit/analyse/profile/test_small_tables.py

# PostgreSQL 15 to 18 and PgBouncer, whose packages are unpacked in the user's cache; and a real Citus cluster
# where TAMIAS_CITUS names a folder with PostgreSQL and the extension.
cluster-test: setup
	TAMIAS_CLUSTER=1 $(BIN)/pytest tests/integration/cluster

# Made anew after a change of dependencies in pyproject.toml; uv is only needed for this.
lock: setup
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url -o requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url -o requirements/dev.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
