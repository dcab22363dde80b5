# Two commands: `make demo` and `make test`. Each makes what it needs in .venv, and is quick the
# second time.

PYTHON ?= python3
VENV := .venv
MINUTES ?= 10
SAMPLE ?= 100
# They cost much while they are measured, and reach no branch that the others don't.
UNMEASURED := $(addprefix tests/protocol/,test_corpus.py test_usage_properties.py test_reference.py)
SLOW := $(UNMEASURED) tests/protocol/test_hostile.py
OTHERS := $(filter-out tests/protocol/ %__pycache__/,$(wildcard tests/*/ tests/test_*.py)) $(UNMEASURED)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
STACKS := .venv-stacks
CANARY := .venv-canary
ENGINES := .venv-conformance
ADAPTERS := tests/conformance/adapters
# Where crawlers of others are, for the acid test: packages of Python and of npm.
export ACID_ENV ?= .venv-acid
FIGURES := docs/_static/figures
SCRAPY_MAIN ?= scrapy @ git+https://github.com/scrapy/scrapy@master

.PHONY: help help-all quick demo demo-builtin fleet redis-server browser test test-just-started lint unit \
	test-protocol test-all model stacks canary acid acid-crawlers conformance fuzz mutants wire bench measure figures docs package clean
.DEFAULT_GOAL := help

help:
	@echo "make demo          crawl a small web of fifteen sites, each with its own robots.txt story"
	@echo "make quick         the tests of the core, in less than half a minute"
	@echo "make lint          style, types, import contracts"
	@echo "make unit          all tests; one file: $(BIN)/python -m pytest tests/…"
	@echo "make test          lint and all tests"
	@echo "make docs          docs/_build/html"
	@echo "make bench         the benchmarks that need a few minutes and no network"
	@echo "make help-all      all others"

help-all: help
	@echo
	@echo "make demo-builtin  the demo with Scrapy's built-in middleware, to compare"
	@echo "make fleet         crawl two hundred sites with four processes that share what they know"
	@echo "make wire          crawls whose delays and pauses a server measures, in ten minutes"
	@echo "make model         the queue beside a plain list in made-up time, a million steps"
	@echo "make fuzz          verdicts on random files beside a plain reference, for MINUTES=10"
	@echo "make mutants       small changes of the code that a test should notice, SAMPLE=100 of each room"
	@echo "make acid          the acid test of this crawler, and of those of others that are installed"
	@echo "make acid-crawlers installs those of others, and Debian's with apt-get where it may"
	@echo "make conformance   the conformance cases, asked of this and other parsers of robots.txt"
	@echo "make stacks        crawls with the packages that people use with Scrapy, newest versions"
	@echo "make canary        the tests of crawls with Scrapy's main branch"
	@echo "make test-just-started  make test, as on a machine that was just started"
	@echo "make figures       the figures of the docs from docs/_static/figures/*.json; RUN=1 measures first"
	@echo "make package       wheel and sdist in dist/, built once and checked"
	@echo "make clean         remove what the others made"

$(INSTALLED): pyproject.toml
	@echo "== making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "== installing scrapy-rep and what its tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group test --group lint
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/python example_project/demo.py

# Without these bounds it waits three minutes for the site that hangs, and reads a GiB of the
# endless file. It fails, as disallowed pages reach the web: that is what it shows.
demo-builtin: $(INSTALLED)
	-@$(BIN)/python example_project/demo.py -s ADDONS={} -s ROBOTSTXT_OBEY=True \
		-s DOWNLOAD_TIMEOUT=4 -s DOWNLOAD_MAXSIZE=20000000 -s LOG_LEVEL=CRITICAL

test: $(INSTALLED) browser redis-server
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint test-all test-protocol

# The same with a monotonic clock that begins at 0, as on a machine that was just started. Linux
# lets root do so.
test-just-started:
	@up=$$(cut -d. -f1 /proc/uptime); \
		unshare --time --monotonic=-$$up --boottime=-$$up --fork $(MAKE) --no-print-directory test

# The report's page is tested in a real browser. Where there is none, and this may install one, it
# does; where it may not, those tests are skipped, or fail where CI is set.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== installing chromium, for the tests of the report"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null \
			|| echo "== chromium could not be installed"; \
	else \
		echo "== no chromium here: the tests of the report's page are skipped"; \
	fi

lint: $(INSTALLED)
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/mypy
	@echo "== import contracts"
	@$(BIN)/lint-imports

# Side by side: the crawls wait for servers most of the time, and leave the processors to the others.
# Each of their processes would compile all of it anew where no bytecode may be written.
test unit: export PYTHONDONTWRITEBYTECODE =
unit: $(INSTALLED) redis-server
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-all test-protocol

# The protocol without what needs many or hostile files.
quick: $(INSTALLED)
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/protocol $(SLOW:%=--ignore=%)

test-protocol:
	@echo "== tests of the protocol, which are to reach every branch of it"
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/protocol $(UNMEASURED:%=--ignore=%) \
		--cov=scrapy_rep/protocol --cov-fail-under=100

# `+` keeps its output from being held back to its end: whoever waits sees how far it is. The first
# time, tests are compiled once, not by each of the processes.
test-all:
	@echo "== all other tests"
	@ls tests/__pycache__/*pytest* >/dev/null 2>&1 || \
		$(BIN)/python -m pytest -q -p no:cacheprovider --collect-only $(OTHERS) >/dev/null
	+@$(BIN)/python -m pytest -q -p no:cacheprovider --numprocesses=8 --maxschedchunk=1 $(OTHERS)

# Some thousand steps of it are in `make test`; one seed alone: python -m tests.fuzz.queue --seed N
model: $(INSTALLED)
	@$(BIN)/python -m tests.fuzz.queue

# Each story alone, twice, with the times that a crawler has by default: up to an hour for each crawler.
# All stories at once are in `make test`. WRITE=1 draws the tables of the docs from what was found.
acid: $(INSTALLED)
	@$(BIN)/python -m tests.acid.compare $(if $(WRITE),--write) $(ARGS)

acid-crawlers: browser
	@test -d $(ACID_ENV) || $(PYTHON) -m venv $(ACID_ENV)
	@$(ACID_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(ACID_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --group acid
	@npm install --silent --no-audit --no-fund --prefix $(ACID_ENV) crawlee simplecrawler
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends wget wget2 httrack >/dev/null; \
	fi

# In an environment of its own, as these packages bring many others; the newest of each, each time.
stacks: redis-server browser
	@test -d $(STACKS) || $(PYTHON) -m venv $(STACKS)
	@$(STACKS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(STACKS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--upgrade-strategy eager --editable . --group test --group stacks
	@REP_STACKS=1 $(STACKS)/bin/python -m pytest -q -p no:cacheprovider --numprocesses=2 tests/stacks

# In an environment of its own, too: what a coming Scrapy changes is seen before it is released.
canary:
	@test -d $(CANARY) || $(PYTHON) -m venv $(CANARY)
	@$(CANARY)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(CANARY)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group test
	@$(CANARY)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "$(SCRAPY_MAIN)"
	@$(CANARY)/bin/scrapy version
	@$(CANARY)/bin/python -m pytest -q -p no:cacheprovider --numprocesses=6 --ignore=tests/protocol

# Other parsers are installed in an environment of their own, those for Node.js beside them. One that
# can't be installed is left out. fast-robotstxt has a folder of its own, as its package has the name
# of another. Those of Perl, Ruby and other versions of Python are asked where the programs are.
conformance: $(INSTALLED)
	@test -d $(ENGINES) || $(PYTHON) -m venv $(ENGINES)
	@while read -r package; do \
		case $$package in fast-*) where="--upgrade --target $(ENGINES)/fast-robotstxt";; *) where=;; esac; \
		$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check $$where "$$package" \
			|| echo "== $$package could not be installed"; \
	done < $(ADAPTERS)/requirements.txt
	@cp $(ADAPTERS)/package.json $(ENGINES)
	@npm install --silent --prefix $(ENGINES) || echo "== no parsers for Node.js: npm is missing or failed"
	@$(BIN)/python -m tests.conformance $(ARGS)

# Four processes, two hundred origins, one robots.txt request each; then with workers that die.
fleet: $(INSTALLED) redis-server
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group fleet
	@for store in redis sqlite; do \
		$(BIN)/python example_project/fleet.py --store $$store --again && \
		$(BIN)/python example_project/fleet.py --store $$store --kill 4 || exit 1; done

# The tests of the Redis store start one of their own, and want no service.
redis-server:
	@if command -v redis-server valkey-server >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== installing redis-server, which the tests of the Redis store start"; \
		(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends redis-server) >/dev/null || true; \
	else \
		echo "== no redis-server: tests of the Redis store are skipped (apt-get install redis-server)"; \
	fi

fuzz: $(INSTALLED)
	@$(BIN)/python -m tests.fuzz.verdicts --minutes $(MINUTES)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.mutants --sample $(SAMPLE)

wire: $(INSTALLED) redis-server
	@$(BIN)/python -m tests.wire

bench: $(INSTALLED)
	@for module in compare process_request; do \
		echo "== $$module"; $(BIN)/python -m tests.benchmarks.$$module || exit 1; done

# What the figures show, for which the machine should do nothing else. Memory is measured on real
# files: without REP_CORPUS its results stay as they are.
measure: $(INSTALLED)
	@$(BIN)/python -m tests.benchmarks.broad shares --origins 200 --pages 15 --rounds 2 --at-most 15 \
		--json $(FIGURES)/shares.json
	@$(BIN)/python -m tests.benchmarks.new_sites --sites 600 --json $(FIGURES)/newsites.json
	@$(BIN)/python -m tests.benchmarks.compare --only rules --json $(FIGURES)/rules.json
	@$(BIN)/python -m tests.benchmarks.compare --only memory --json $(FIGURES)/memory.json
	@$(BIN)/python -m tests.benchmarks.broad pop --slots 100 300 1000 3000 10000 --json $(FIGURES)/pop.json
	@$(BIN)/python -m tests.benchmarks.origins --origins 5000 20000 100000 --rounds 1 \
		--json $(FIGURES)/origins.json --memory-json $(FIGURES)/peak.json

figures: $(INSTALLED) $(if $(RUN),measure)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group figures
	@$(BIN)/python -m tests.benchmarks.figures

docs: $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@$(BIN)/sphinx-build -W -n -q docs docs/_build/html

package: $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group package
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist .
	@$(BIN)/twine check --strict dist/*

clean:
	rm -rf $(VENV) $(STACKS) $(CANARY) $(ENGINES) .venv-acid dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage coverage.xml
