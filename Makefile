# envs/setup.sh installs everything inside this checkout, into .venv/ and .tools/. No target changes or removes results.

.DEFAULT_GOAL := help
.PHONY: help setup k6 artillery ask slurm kubernetes demo test test-long soak bench lint house mutate docs format audit browser cluster storage generators \
	schedulers dev clean-tools site-docs metadata licenses sbom release-check

# To use another Python than python3 on PATH: make setup PYTHON=/path/to/python3.12
export PYTHON
export PLAYWRIGHT_BROWSERS_PATH := $(CURDIR)/.tools/browsers

# Runs a command with the installed tools first on PATH.
RUN := PATH="$$PWD/.venv/bin:$$PWD/.tools/bin:$$PATH"

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | while IFS='	' read -r target text; do \
		printf 'make %-12s %s\n' "$$target" "$$text"; done

setup: ## Install what Loadstone runs on into this checkout: .venv/ and .tools/
	@sh envs/setup.sh

k6: setup ## Install the load generator k6, for sweeps with `generator: k6`
	@sh envs/setup.sh k6

artillery: setup ## Install the load generator Artillery, for sweeps with `generator: artillery`
	@sh envs/setup.sh artillery

ask: setup ## Install DuckDB for browsers, for SQL queries in the report
	@sh envs/setup.sh ask

slurm: setup ## Install Snakemake's executor for Slurm, for `--profile profiles/slurm`
	@sh envs/setup.sh slurm

kubernetes: setup ## Install Snakemake's executor for Kubernetes, for `--profile profiles/kubernetes`
	@sh envs/setup.sh kubernetes

demo: setup ## Measure four variants of a small web application on this machine, and build the report
	@LOADSTONE_OPTIONAL_GENERATORS=1 sh envs/setup.sh ask
	@$(RUN) snakemake --cores 1 open
	@$(RUN) snakemake --cores all
	@echo "The report: $(CURDIR)/reports/index.html"

# More workers than cores, because many tests wait.
PYTEST := $(RUN) pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 20

test: browser storage generators $(if $(LONG),cluster schedulers) ## Run the tests; with LONG=1 those of test-long too, with LONG=share a fourteenth of them
ifeq ($(LONG),share)
	@export LOADSTONE_SHARE=$${LOADSTONE_SHARE:-$$(git rev-list --count HEAD)}; echo "LOADSTONE_SHARE=$$LOADSTONE_SHARE"; \
		$(PYTEST) -m "not long or share"
else
	@$(PYTEST) $(if $(LONG),,-m "not long")
endif

test-long: browser cluster storage generators schedulers ## Run the tests that take long: kills, faults, simulations, cluster sweeps, schedulers, fuzzing
	@export LOADSTONE_FUZZ_S=$${LOADSTONE_FUZZ_S:-30}; $(PYTEST) -m "long or fuzz"

soak: dev cluster ## Interrupt sweeps at random, and check that nothing is lost: make soak SEED=7 MINUTES=30
	@LOADSTONE_SOAK_SEED=$(SEED) LOADSTONE_SOAK_MINUTES=$(or $(MINUTES),5) LOADSTONE_SOAK_EPISODE=$(or $(EPISODE),0) \
		$(RUN) pytest -q -p no:cacheprovider tests/soak

bench: browser ## Run the benchmarks, each next to a reference; only one: make bench NAME=large_campaign
	@$(RUN) python tests/bench/run.py $(NAME)

lint: dev ## Check style, types, imports and workflow
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) snakefmt --check Snakefile rules
	@$(RUN) mypy
	@$(RUN) lint-imports --no-cache
	@$(RUN) snakemake --lint

docs: dev ## Write docs/tables.md from the schema
	@$(RUN) python tests/docs/dictionary.py

mutate: browser cluster storage generators schedulers ## Break the code on purpose, in one place at a time, and check that the tests notice
	@$(RUN) python tests/mutants/run.py

house: dev ## Print code sizes and their limits
	@$(RUN) python tests/toolchain/house.py

audit: dev ## Check the pinned Python packages for known vulnerabilities
	@$(RUN) python envs/audit.py

site-docs: dev ## Build the documentation's site into dist/docs; a link that leads nowhere is an error
	@sh envs/setup.sh docs
	@rm -rf .tools/docs-source && mkdir -p .tools/docs-source
	@git ls-files -z '*.md' docs config LICENSE .github | tar --null -T - -cf - | tar -xf - -C .tools/docs-source
	@NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --strict

metadata: setup ## Write the version of pyproject.toml into the files that cite it
	@.venv/bin/python envs/metadata.py

licenses: dev ## List all that is installed and shipped, with licenses; one that nobody knows is an error
	@.venv/bin/python envs/components.py licenses

sbom: dev ## Write a software bill of materials (CycloneDX) into dist/
	@.venv/bin/python envs/components.py sbom

release-check: dev ## Check that this version can be released
	@$(RUN) python envs/release_check.py

format: dev ## Format the code
	@$(RUN) ruff check --fix .
	@$(RUN) ruff format .
	@$(RUN) snakefmt Snakefile rules

dev: setup ## Install what tests and checks need too
	@sh envs/setup.sh dev

browser: dev # A Chromium for the tests of the report
	@sh envs/setup.sh browser

generators: setup # The load generators that only some sweeps need, and DuckDB for browsers
	@LOADSTONE_OPTIONAL_GENERATORS=1 sh envs/setup.sh k6
	@LOADSTONE_OPTIONAL_GENERATORS=1 sh envs/setup.sh artillery
	@LOADSTONE_OPTIONAL_GENERATORS=1 sh envs/setup.sh ask

cluster: setup # A Kubernetes control plane for tests, built once per user
	@sh envs/setup.sh cluster

storage: setup # An S3-compatible server for tests, built once per user
	@sh envs/setup.sh storage

schedulers: setup # Snakemake with executors for schedulers, in a separate environment
	@sh envs/setup.sh schedulers

clean-tools: ## Remove what setup installed; results, tables and reports stay
	@if [ -d .tools ]; then chmod -R u+w .tools; fi
	rm -rf .venv .tools
