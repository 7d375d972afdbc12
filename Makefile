# Loom Bridge. `make` alone lists the targets; the README needs two of them:
# `make demo` and `make test`. Each target fetches what it needs by itself.

# One setting for all builds, so that they share what is compiled.
export GOFLAGS := -trimpath $(GOFLAGS)
# Tests start Python some hundred times, which compiles all that it imports unless it may keep it.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
PYTHON ?= python3

# The version that the binary reports: that of clients/python/pyproject.toml and, unless its
# tag is checked out, the commit and a digest of what was changed. No two builds share one:
# what starts the binary keeps copies by version.
VERSION := $(or $(VERSION),$(shell .ci/version))

# Pinned here, in go.mod (`tool` lines) or in $(CLIENT)/requirements-dev.txt.
GOLANGCI_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.8.0
GRPCURL_VERSION := v1.9.3
NFPM_VERSION := v2.45.2
TOOLS := $(CURDIR)/.tools
GOLANGCI := $(TOOLS)/golangci-lint
GOLANGCI_STAMP := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GRPCURL_STAMP := $(TOOLS)/grpcurl-$(GRPCURL_VERSION)
NFPM_STAMP := $(TOOLS)/nfpm-$(NFPM_VERSION)

CLIENT := clients/python
VENV := $(CLIENT)/.venv
VENV_STAMP := $(VENV)/.synced
CLIENT_STAMP := $(VENV)/.client
# The demo and the wheels need a tenth of what the tests do; the tests' environment does as well.
VENV_SMALL := $(CLIENT)/.venv-small
RUN := $(if $(wildcard $(CLIENT_STAMP)),$(VENV),$(VENV_SMALL))
RUN_STAMP := $(RUN)/.client
VENV_LOWEST := $(CLIENT)/.venv-lowest
VENV_LOWEST_STAMP := $(VENV_LOWEST)/.synced
# What frameworks bring that are too heavy for every `make test`, on top of the tests' environment.
VENV_FRAMEWORKS := $(CLIENT)/.venv-frameworks
# The same with the oldest versions that the client's adapters promise.
VENV_OLDEST := $(CLIENT)/.venv-oldest
VENV_FRAMEWORKS_STAMP := $(VENV_FRAMEWORKS)/.synced
VENV_OLDEST_STAMP := $(VENV_OLDEST)/.synced
BUF := $(VENV)/bin/buf

SERVER := bin/loom-bridge-server
MODEL := bin/use-multilingual-3.model
BENCH := bin/loom-bridge-bench
TYPESCRIPT := clients/typescript
# What was tested last, by the times of files: a fresh clone has none.
STAMPS := .ci/.stamps
DEPLOY := server/cmd/loom-bridge-server/deploy

# Descriptors of loombridge.v1 that no later change may break, made by
# proto-release. Until 0.1 is released a change may take them anew; later a
# release does.
RELEASED := proto/loombridge-v1.binpb

# Knobs of the targets that take them.
TEST_TIMEOUT ?= 20m
# The packages that take longest begin first, so that none runs on alone at the end.
# Six packages, and four tests of each, side by side: most of them wait for servers. Soaks wait longer.
TEST_FIRST := ./server/cmd/loom-bridge-server ./server ./context/assemble ./memory ./memory/kv/pgkv ./memory/vector ./bridge/sandbox
# Tests with Soak in their names kill, erase, damage, attack or replay again and again:
# .ci/run makes a few rounds of each, make soak all, and make test leaves them out.
BRIEF ?= -skip Soak
# Test binaries are linked without what only a debugger reads: a fifth of what it takes to make them.
LEAN := -vet=off -ldflags=-w
# Tests, and servers they start, have memory enough to collect garbage seldom.
go-test py-test test-race: export GOGC ?= 400
RACE_PACKAGES ?= ./memory ./bridge/events ./bridge/agents ./bridge/native ./memory/kv ./memory/kv/memkv ./memory/plans ./memory/embed
# Tests side by side, more than there are cores: many of them wait for a server.
PYTEST_ARGS ?= --numprocesses 3
FUZZTIME ?= 10s
SOAK_ROUNDS ?= 50
STRESS_BASE ?= main
STRESS_ROUNDS ?= 20
STRESS_ARGS ?=
BENCH_ARGS ?=
REST_ARGS ?=
DEMO_ARGS ?=
ARGS ?=

##@ Start here

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: doctor
doctor: ## Say what the targets need and what is missing; change nothing
	@.ci/doctor $(PYTHON)

.PHONY: demo
demo: build $(RUN_STAMP) ## Watch an agent explore this repository, with the server killed halfway
	$(RUN)/bin/python $(CLIENT)/examples/explore_repo.py --server-binary $(SERVER) $(DEMO_ARGS)

.PHONY: cluster
cluster: build py-sync ## Watch two servers on one PostgreSQL, with one of them killed under an agent's work
	$(GO) run ./internal/testkit/pgtest/with $(CURDIR)/$(VENV)/bin/python .ci/cluster.py $(SERVER)

.PHONY: test
test: go-test deploy-test py-test ts-test ## Run the Go, Python and TypeScript tests

.PHONY: check
check: lint check-generate requirements docs test ## All that a change must pass: lint, generated code, requirements, pages, tests

##@ Build and run

.PHONY: install-deps
install-deps: ## Install what the system lacks (C++ compiler, RocksDB, Python) with apt
	@.ci/install-deps $(PYTHON)

# The server finds it beside itself; without it, memory is searched by words.
$(MODEL): .ci/model.py | install-deps
	@echo "Fetching the model of embeddings, 32 MB."
	@$(PYTHON) -B .ci/model.py $@ || echo "The model of embeddings can't be fetched: the server searches by words until \`make model\` works."

.PHONY: model
model: $(MODEL) ## Fetch the model of embeddings that the server finds beside itself

.PHONY: build
build: install-deps $(MODEL) ## Build bin/loom-bridge-server
	@test -e $(SERVER) || echo "Building $(SERVER); the first time, Go downloads and compiles for a minute or two."
	$(BUILD_HELPER)
	@! test -e $(SERVER) || cp -p $(SERVER) $(SERVER).was
	$(GO) build -buildvcs=false -tags embedhelper -ldflags '-X main.version=$(VERSION)' -o $(SERVER) ./server/cmd/loom-bridge-server
	@! cmp -s $(SERVER).was $(SERVER) || touch -r $(SERVER).was $(SERVER) # by its time, go test knows results again
	@rm -f $(SERVER).was

# The server carries the helper of the sandbox (tag embedhelper): a small program starts
# faster than the server, which other builds start as their own helper.
HELPER := bridge/sandbox/helper.bin
BUILD_HELPER = CGO_ENABLED=0 $(GO) build -buildvcs=false -ldflags '-s -w' -o $(HELPER) ./bridge/sandbox/helper

.PHONY: build-bench
build-bench: install-deps ## Build bin/loom-bridge-bench
	$(BUILD_HELPER)
	$(GO) build -buildvcs=false -tags embedhelper -o $(BENCH) ./server/cmd/loom-bridge-bench

# grocksdb_no_link keeps grocksdb from naming the shared libraries itself. The linker's map
# tells a release what was linked in. Nothing in the binary tells builds of a commit apart. The
# C library would load more of itself to look up hosts and users: Go does that alone.
.PHONY: build-static
build-static: install-deps $(MODEL) ## The same with all linked in: the binary needs no library, and runs on any Linux
	$(BUILD_HELPER)
	$(call STATIC,$(SERVER))

define STATIC
CGO_LDFLAGS='-lrocksdb -lsnappy -llz4 -lzstd -lz -lbz2 -lstdc++ -lm' \
  $(GO) build -buildvcs=false -tags grocksdb_no_link,embedhelper,netgo,osusergo \
  -ldflags '-s -w -buildid= -X main.version=$(VERSION) -extldflags "-static -Wl,-Map=$(CURDIR)/$(1).map"' \
  -o $(1) ./server/cmd/loom-bridge-server
endef

DIST := dist
PREFIX ?= /usr/local
.PHONY: wheels
wheels: build-static $(RUN_STAMP) ## Make dist/, from which pip installs the Python client and the server
	rm -rf $(DIST)
	@$(PYTHON) -B .ci/wheel.py $(DIST) $(SERVER) $(wildcard $(MODEL) $(MODEL:.model=.NOTICE))
	$(RUN)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check -w $(DIST) $(CLIENT)

.PHONY: wheel-test
wheel-test: wheels ## Install dist/ with pip in a new environment, and run the README's program
	$(PYTHON) -B .ci/wheel_test.py $(DIST)

.PHONY: npm
npm: build-static ts-build ## Add to dist/ what npm installs: the TypeScript client and the server
	@$(PYTHON) -B .ci/npm.py $(DIST) $(SERVER) $(wildcard $(MODEL) $(MODEL:.model=.NOTICE))

.PHONY: npm-test
npm-test: npm ## Install dist/ with npm in a new folder, and run the program of the TypeScript client's page
	$(VENV)/bin/python -B .ci/npm_test.py $(DIST)

.PHONY: install
install: build-static ## Put the server and its model on the PATH: PREFIX=/usr/local, DESTDIR=
	install -D -m 0755 $(SERVER) '$(DESTDIR)$(PREFIX)/bin/loom-bridge-server'
	@[ ! -e $(MODEL) ] || install -m 0644 $(MODEL) $(MODEL:.model=.NOTICE) '$(DESTDIR)$(PREFIX)/bin/'

# SIGN_KEY is a private key of ssh-keygen; users check by its public half in SIGNERS.
SIGN_KEY ?=
SIGNERS ?= $(DEPLOY)/release.signers
SIGNATURE = $(if $(SIGN_KEY),'$(SIGN_KEY)' '$(SIGNERS)')
.PHONY: release-check
release-check: install-deps py-sync ## Check that a VERSION=X.Y.Z may be released: its number, the changelog, the API, stores of earlier ones
	$(BUILD_HELPER)
	@$(VENV)/bin/python -B .ci/releasable.py $(VERSION) $(RELEASED) $(BUF)
	$(GO) test $(LEAN) -tags embedhelper -count 1 -run TestStoresOfEarlierVersions ./server/cmd/loom-bridge-server

.PHONY: release
release: release-check wheels ts-build $(NFPM_STAMP) ## Write dist/, all that a VERSION=X.Y.Z is installed from; SIGN_KEY=FILE signs it
	@command -v mmdebstrap >/dev/null || { echo "Missing mmdebstrap: apt-get install mmdebstrap"; exit 1; }
	PATH='$(TOOLS)':"$$PATH" $(PYTHON) -B .ci/release.py $(DIST) $(VERSION) $(SERVER) $(MODEL) $(SIGNATURE)

# In a Debian of its own, since one that has both kinds of libraries is no place to work in.
ARM64 := bin/arm64/loom-bridge-server
ARM64_ROOT ?= /var/tmp/loom-bridge-arm64
.PHONY: release-arm64
release-arm64: $(MODEL) ts-build $(NFPM_STAMP) ## Add to dist/ what runs on arm64, but an image: compiled here, in ARM64_ROOT; needs root
	@mkdir -p $(dir $(ARM64))
	.ci/cross $(ARM64_ROOT) env GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
	  bash -c "$$BUILD_ARM64"
	@$(PYTHON) -B .ci/wheel.py $(DIST) $(ARM64) $(wildcard $(MODEL) $(MODEL:.model=.NOTICE))
	PATH='$(TOOLS)':"$$PATH" LINKED_IN=$(ARM64_ROOT) $(PYTHON) -B .ci/release.py $(DIST) $(VERSION) $(ARM64) $(MODEL) $(SIGNATURE)
release-arm64: export BUILD_ARM64 = $(call STATIC,$(ARM64))

.PHONY: build-macos
build-macos: ## Build bin/loom-bridge-server on a Mac, with Homebrew; nobody has tried it yet
	.ci/macos $(MODEL) $(VERSION)

.PHONY: release-test
release-test: py-sync ## Install dist/ on new roots by each road and time it, arm64 by qemu-user; AGAIN=FOLDER also builds it there anew
	$(VENV)/bin/python -B .ci/release_test.py $(DIST) $(AGAIN)

# Where `loom run` looks first for a server that it did not build itself.
LOOM_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/loom/bin/latest
LOOM_PLATFORM := $(shell uname -s | tr A-Z a-z)-$(patsubst arm64,aarch64,$(shell uname -m))

# Moved into place, so that a server that runs from there goes on undisturbed.
.PHONY: install-loom
install-loom: build-static ## Put the server where loom-py's `loom run` finds it
	@mkdir -p '$(LOOM_CACHE)/$(LOOM_PLATFORM)'
	@install -m 0755 $(SERVER) '$(LOOM_CACHE)/$(LOOM_PLATFORM)/.loom-bridge-server.new'
	@[ ! -e $(MODEL) ] || install -m 0644 $(MODEL) $(MODEL:.model=.NOTICE) '$(LOOM_CACHE)/$(LOOM_PLATFORM)/'
	@mv -f '$(LOOM_CACHE)/$(LOOM_PLATFORM)/.loom-bridge-server.new' '$(LOOM_CACHE)/$(LOOM_PLATFORM)/loom-bridge-server'
	@'$(LOOM_CACHE)/$(LOOM_PLATFORM)/loom-bridge-server' --version
	@echo "installed in $(LOOM_CACHE)/$(LOOM_PLATFORM)"

.PHONY: run
run: build ## Build and start the server; flags go in ARGS
	$(SERVER) $(ARGS)

##@ Test

.PHONY: go-test
go-test: build ## Run the Go tests but the soaks (BRIEF= with them), and say which took longest
	GO=$(GO) LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) .ci/in-memory $(PYTHON) -B .ci/gotest.py -short $(BRIEF) $(LEAN) -tags embedhelper -p 6 -parallel $(if $(BRIEF),4,8) -timeout $(TEST_TIMEOUT) $(TEST_FIRST) ./...

.PHONY: limits
limits: build ## Drive a server to each of its limits and print how far it came
	LOOM_LIMITS=1 $(GO) test -tags embedhelper -count 1 -run 'TestLimitsOfAServerSoak$$' -v ./server/cmd/loom-bridge-server | grep -v '^=== '

# A module of its own: the schemas of Kubernetes, Compose and Envoy are no dependency of the server.
.PHONY: deploy-test
deploy-test: $(STAMPS)/deploy-test ## Check the files for deployment against the schemas of what reads them, if they changed

$(STAMPS)/deploy-test: $(shell find $(DEPLOY) -type f)
	cd $(DEPLOY)/check && $(GO) test ./...
	@mkdir -p $(STAMPS) && touch $@

.PHONY: py-test
py-test: build py-sync ## Run the tests and examples of the Python client against the built server
	cd $(CLIENT) && LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) ../../.ci/in-memory ../../.ci/pytest .venv/bin/python $(PYTEST_ARGS)

# What wants a server is left out: the server is the same one whatever the client has.
.PHONY: py-test-lowest
py-test-lowest: build py-sync $(VENV_LOWEST_STAMP) ## The tests for the built package, with the lowest grpcio and protobuf it allows
	rm -rf $(CLIENT)/dist
	$(VENV)/bin/python -m build --wheel --no-isolation $(CLIENT)
	$(VENV_LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(CLIENT)/dist/*.whl
	$(VENV_LOWEST)/bin/python -m pip check
	cd $(CLIENT) && LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) ../../.ci/in-memory .venv-lowest/bin/python -m pytest $(PYTEST_ARGS) -o pythonpath='tests examples' --without-server --ignore tests/test_providers_libraries.py --ignore tests/test_providers_runs.py

# What is tested with the oldest versions, whose warnings are their own, but for random operations.
OLDEST := $(addprefix tests/,test_anthropic.py test_deepagents.py test_langchain.py test_langgraph.py test_langgraph_saver.py test_langgraph_store.py \
  test_openai_agents.py $(addprefix frameworks/,test_agent_framework.py test_google_adk.py test_google_adk_artifacts.py test_langgraph_copying.py test_llama_index.py))

.PHONY: frameworks-test
frameworks-test: build py-sync $(VENV_OLDEST_STAMP) ## Check the types of the adapters for heavy frameworks, and test all adapters with the oldest versions, too
	cd $(CLIENT) && .venv/bin/basedpyright --project frameworks.json --pythonpath .venv-frameworks/bin/python
	cd $(CLIENT) && LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) ../../.ci/in-memory ../../.ci/pytest .venv-frameworks/bin/python $(PYTEST_ARGS) tests/frameworks
	cd $(CLIENT) && LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) ../../.ci/in-memory ../../.ci/pytest .venv-oldest/bin/python $(PYTEST_ARGS) -W default -k 'not random' $(OLDEST)

.PHONY: ts-build
ts-build: py-sync ## Build what the npm package of the TypeScript client has
	VENV=$(CURDIR)/$(VENV) $(TYPESCRIPT)/run

.PHONY: ts-test
ts-test: $(STAMPS)/ts-test ## Generate, build and test the TypeScript client against the built server, if it or the protos changed

$(STAMPS)/ts-test: $(wildcard proto/loombridge/v1/*.proto) $(shell find $(TYPESCRIPT) \( -name node_modules -o -name gen -o -name build \) -prune -o -type f -print) | build py-sync
	VENV=$(CURDIR)/$(VENV) SERVER=$(CURDIR)/$(SERVER) $(TYPESCRIPT)/run
	@mkdir -p $(STAMPS) && touch $@

.PHONY: console-test
console-test: build py-sync ## Look at every screen of the console in a browser without a window
	VENV=$(CURDIR)/$(VENV) SERVER=$(CURDIR)/$(SERVER) .ci/console/run

.PHONY: rest-test
rest-test: build py-sync ## Send the server what its OpenAPI description allows and forbids; REST_ARGS searches longer
	PYTHON=$(CURDIR)/$(VENV)/bin/python SERVER=$(CURDIR)/$(SERVER) .ci/fuzz/run $(REST_ARGS)

.PHONY: mcp-test
mcp-test: build py-sync ## Run the conformance suite and the clients of the Model Context Protocol (needs the network)
	VENV=$(CURDIR)/$(VENV) SERVER=$(CURDIR)/$(SERVER) .ci/mcp/run

.PHONY: readme-test
readme-test: build py-sync $(GRPCURL_STAMP) ## Run the commands of README.md and the pages, as they are printed
	$(VENV)/bin/python .ci/readme.py $(SERVER) $(TOOLS)/grpcurl

# What computes alone, measures on larger data or runs in RocksDB has nothing for the race
# detector, under which it takes minutes.
RACE_SKIP := Soak|OnRocksDB|PlainReading|Churn|TreeAgainstMap|ManyEntries|Vaswani|NewestTellingFirst
.PHONY: test-race
test-race: install-deps ## Run Go tests under the race detector; choose with RACE_PACKAGES
	LOOM_EVAL_DATA= .ci/in-memory $(GO) test -race -short -skip '$(RACE_SKIP)' $(LEAN) -p 4 -timeout $(TEST_TIMEOUT) $(RACE_PACKAGES)

# Only what asks for one engine gets it: tests that make their own stay in memory.
.PHONY: test-postgres
test-postgres: install-deps ## Run the tests of memory and of the service on a PostgreSQL
	$(GO) run ./internal/testkit/pgtest/with $(GO) test -count 1 -timeout 60m ./memory ./server ./server/loomv1

# Only the engines differ by the tag, and go-test has tested all else: what is built of other
# files is checked with its tests, the rest to compile.
FILES := {{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}
.PHONY: test-norocksdb
test-norocksdb: export CGO_ENABLED = 0
test-norocksdb: ## Check everything without cgo and RocksDB, and test the engines so
	$(GO) build -tags norocksdb ./...
	GOOS=darwin GOARCH=arm64 $(GO) build -tags norocksdb ./server/... # two programs, so nothing is linked
	$(GO) vet -tags norocksdb $$(comm -13 <(CGO_ENABLED=1 $(GO) list -f '$(FILES)' ./... | sort) <($(GO) list -tags norocksdb -f '$(FILES)' ./... | sort) | cut -d' ' -f1)
	.ci/in-memory $(GO) test -short $(LEAN) -tags norocksdb -timeout $(TEST_TIMEOUT) ./memory/kv ./memory/kv/memkv ./memory/kv/rockskv

.PHONY: fuzz
fuzz: install-deps ## Run every fuzz target for FUZZTIME each
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -rn1 dirname | sort -u | while read -r package; do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | cut -d' ' -f2); do \
	    echo "$$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

.PHONY: soak
soak: build ## Run the long kill -9 tests, SOAK_ROUNDS rounds, and all other Go tests in full
	@packages=$$(grep -rlE '^func Test[A-Za-z0-9_]*Soak' --include='*_test.go' . | xargs -rn1 dirname | sort -u); \
	[ -n "$$packages" ] || { echo "There is no soak test."; exit 1; }; \
	LOOM_SEED=random LOOM_SOAK_ROUNDS=$(SOAK_ROUNDS) $(GO) test -tags embedhelper -run Soak -count 1 -v -timeout 10h $$packages
	LOOM_SEED=random LOOM_SOAK_ROUNDS=$(SOAK_ROUNDS) $(GO) test -tags embedhelper -skip Soak -count 1 -timeout 10h ./...

.PHONY: test-stress
test-stress: build ## Run each Go test package that changed since STRESS_BASE twenty times beside three busy loops
	LOOM_BRIDGE_SERVER=$(CURDIR)/$(SERVER) .ci/stress $(STRESS_BASE) -short $(LEAN) -tags embedhelper -parallel 4 -count $(STRESS_ROUNDS) $(STRESS_ARGS)

.PHONY: bench
bench: build build-bench ## Print the benchmark tables; flags go in BENCH_ARGS
	$(BENCH) $(BENCH_ARGS)

.PHONY: bench-paths
bench-paths: build-bench ## Count what calls of the hot paths take, and compare with paths.json; flags go in BENCH_ARGS
	$(BENCH) paths $(BENCH_ARGS)

##@ Source

.PHONY: lint
lint: proto-lint go-lint py-lint ## Check protos, Go and Python for style and types

.PHONY: proto-lint
proto-lint: py-sync
	$(BUF) lint
	$(BUF) format --diff --exit-code
	$(BUF) breaking --against $(RELEASED)

.PHONY: proto-release
proto-release: py-sync ## Take loombridge.v1 as it is for what later changes may not break
	$(BUF) build --path proto/loombridge/v1 --exclude-source-info -o $(RELEASED)

# The first looks at the form of all files that are built here, too.
.PHONY: go-lint
go-lint: install-deps $(GOLANGCI_STAMP)
	$(GOLANGCI) run --allow-parallel-runners ./...
	$(GOLANGCI) fmt --diff $(DEPLOY)/check $$($(GO) list -f '{{range .IgnoredGoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./...)

.PHONY: py-lint
py-lint: py-sync ## Check only Python: ruff, and types with basedpyright
	cd $(CLIENT) && .venv/bin/ruff check . ../../.ci
	cd $(CLIENT) && .venv/bin/ruff format --check . ../../.ci
	cd $(CLIENT) && .venv/bin/basedpyright

.PHONY: fmt
fmt: $(GOLANGCI_STAMP) py-sync ## Format protos, Go and Python
	$(BUF) format --write
	$(GOLANGCI) fmt
	cd $(CLIENT) && .venv/bin/ruff check --select I --fix . ../../.ci
	cd $(CLIENT) && .venv/bin/ruff format . ../../.ci

# Where generated code lies, below the root.
GENERATED := proto/gen $(CLIENT)/src/loombridge/v1

# What the browser gets.
CONSOLE := server/console/built

# The new code is complete before the old is removed, so that a mistake in a
# proto leaves the tree as it was.
.PHONY: generate
generate: py-sync ## Generate Go and Python code from the protos
	@new=$$(mktemp -d); trap 'rm -rf "$$new"' EXIT; \
	.ci/generate "$$new" $(VENV)/bin; \
	for folder in $(GENERATED); do \
	  rm -rf "$$folder"; mkdir -p "$$folder"; cp -R "$$new/$$folder/." "$$folder/"; \
	done
	@$(VENV)/bin/python .ci/sync_face.py

.PHONY: generate-sync
generate-sync: py-sync ## Write only the synchronous Python client, from the asynchronous one
	@$(VENV)/bin/python .ci/sync_face.py

.PHONY: console
console: install-deps ## Build what the browser gets of the console, from server/console/src
	$(PYTHON) -B .ci/console/build.py $(CONSOLE) $(GO)

.PHONY: check-generate
check-generate: py-sync ## Check that the generated code is what the protos and the console's sources give
	@new=$$(mktemp -d); trap 'rm -rf "$$new"' EXIT; \
	.ci/generate "$$new" $(VENV)/bin; \
	for folder in $(GENERATED); do \
	  diff -ru --exclude=__pycache__ "$$folder" "$$new/$$folder" || \
	    { echo "$$folder is not what the protos give: run make generate"; exit 1; }; \
	done; \
	$(VENV)/bin/python .ci/sync_face.py --check; \
	$(PYTHON) -B .ci/console/build.py "$$new/console" $(GO); \
	diff -rq $(CONSOLE) "$$new/console" || { echo "$(CONSOLE) is not what its sources give: run make console"; exit 1; }; \
	echo "generated code is current"

.PHONY: requirements
requirements: ## Compare .ci/requirements.tsv with the tests that name its ids, and test what runs tests
	@$(PYTHON) -B .ci/requirements_test.py --quiet
	@$(PYTHON) -B .ci/gotest_test.py --quiet
	@$(PYTHON) -B .ci/releasable_test.py --quiet
	@$(PYTHON) -B .ci/requirements.py

.PHONY: docs
docs: install-deps ## Check the map in ARCHITECTURE.md and the size of the pages
	@$(PYTHON) -B .ci/docs.py $(GO)

.PHONY: vuln
vuln: install-deps ## Look for known vulnerabilities; needs the network
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...

##@ Environments

.PHONY: py-sync
py-sync: $(CLIENT_STAMP) ## Bring clients/python/.venv to the pinned versions

# A line for each package, and none of the rest that pip says; its errors stay.
PIP_PROGRESS = sed -un 's/^Collecting \([^ ]*\).*/  \1/p; s/^Installing collected packages.*/  unpacking all of them/p'

# An environment is made anew rather than changed, so that nothing old stays.
$(VENV_STAMP): $(CLIENT)/requirements-dev.txt | install-deps
	@echo "Making a Python environment in $(VENV); only the first time, it downloads some 200 MB."
	$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python -m pip install --no-deps --no-compile --disable-pip-version-check --progress-bar off -r $(CLIENT)/requirements-dev.txt | $(PIP_PROGRESS)
	@touch $@

# The client is used where it lies: a change in its code needs no new sync.
$(CLIENT_STAMP): $(VENV_STAMP) $(CLIENT)/pyproject.toml
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e $(CLIENT)
	@touch $@

$(VENV_SMALL)/.client: $(CLIENT)/requirements-dev.txt $(CLIENT)/pyproject.toml | install-deps
	$(PYTHON) -m venv --clear $(VENV_SMALL)
	@$(VENV_SMALL)/bin/python -m pip install --no-compile --disable-pip-version-check --progress-bar off -c $(CLIENT)/requirements-dev.txt hatchling | $(PIP_PROGRESS)
	@$(VENV_SMALL)/bin/python -m pip install --no-compile --disable-pip-version-check --progress-bar off -c $(CLIENT)/requirements-dev.txt --no-build-isolation -e $(CLIENT) | $(PIP_PROGRESS)
	@touch $@

$(VENV_LOWEST_STAMP): $(CLIENT)/requirements-lowest.txt | install-deps
	$(PYTHON) -m venv --clear $(VENV_LOWEST)
	@$(VENV_LOWEST)/bin/python -m pip install --no-deps --no-compile --disable-pip-version-check --progress-bar off -r $(CLIENT)/requirements-lowest.txt | $(PIP_PROGRESS)
	@touch $@

# By `addsitedir`, what is in the environment below, such as the client in the tree, is there as well.
define layer
	$(PYTHON) -m venv --clear $(1)
	@$(1)/bin/python -m pip install --no-deps --no-compile --disable-pip-version-check --progress-bar off -r $< | $(PIP_PROGRESS)
	@for each in $(1)/lib/python*/site-packages; do \
	  echo "import site; site.addsitedir('$(CURDIR)/$(2)/lib/$$(basename $$(dirname $$each))/site-packages')" > $$each/base.pth; \
	done
	@touch $@
endef

$(VENV_FRAMEWORKS_STAMP): $(CLIENT)/requirements-frameworks.txt $(VENV_STAMP)
	$(call layer,$(VENV_FRAMEWORKS),$(VENV))

$(VENV_OLDEST_STAMP): $(CLIENT)/requirements-oldest.txt $(VENV_FRAMEWORKS_STAMP)
	$(call layer,$(VENV_OLDEST),$(VENV_FRAMEWORKS))

$(GOLANGCI_STAMP):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@

$(GRPCURL_STAMP):
	GOBIN=$(TOOLS) $(GO) install github.com/fullstorydev/grpcurl/cmd/grpcurl@$(GRPCURL_VERSION)
	@touch $@

$(NFPM_STAMP):
	GOBIN=$(TOOLS) $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	@touch $@
