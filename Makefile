# `make` alone lists what there is to do.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Tools, at versions that build with the Go version of go.mod.
GOLANGCI_LINT := v2.15.0
GORELEASER    := v2.16.0
BENCHSTAT     := v0.0.0-20260908200009-22c9c6c9d4da
GOVULNCHECK   := v1.9.0
ACTIONLINT    := v1.7.12
AXE           := 4.14.1
BIN           := .bin

# What the binary says of itself. The date is the commit's, so that equal
# sources make equal binaries.
VERSION = $(patsubst v%,%,$(or $(shell git describe --tags --dirty --match 'v*' 2>/dev/null),dev))
COMMIT  = $(shell git rev-parse HEAD 2>/dev/null)
DATE    = $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
INFO   := github.com/waybill-cli/waybill/internal/buildinfo
LDFLAGS = -s -w -funcalign=16 -X $(INFO).version=$(VERSION) -X $(INFO).commit=$(COMMIT) -X $(INFO).date=$(DATE)
BUILD   = go build -trimpath -ldflags '$(LDFLAGS)'
AXEDIR := dist/axe-$(AXE)/node_modules/axe-core
EXE    := $(shell go env GOEXE 2>/dev/null)

# Tests, tools and programs are built in one way: what one target has compiled, the next need not.
export CGO_ENABLED = 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

# Vetting is a part of `make lint`.
TEST = TMPDIR=$$(.ci/tmpdir) go test -vet=off

# The packages whose tests take longest come first. Without the race detector tests wait as much
# as they work: one package more at once than there are processors.
PACKAGES = ./internal/store/postgres ./cmd/waybill ./internal/cli ./internal/store/sqlite ./...
ATONCE   = $$((1 + $$(getconf _NPROCESSORS_ONLN || echo 2)))

# To be set on the command line: make fuzz FUZZTIME=5m, make bench BENCH=Create.
TESTFLAGS ?=
FUZZTIME  ?= 30s
BENCH     ?= .
BENCHTIME ?= 1s
COUNT     ?= 1
DSN       ?=
BASE      ?= main

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## build waybill and show the whole job, no account needed
	./waybill$(EXE) demo

build: ## build ./waybill
	$(BUILD) -o waybill$(EXE) ./cmd/waybill

test: ## run the tests (with LibreOffice, a PostgreSQL server and HAProxy, where they are installed)
	$(TEST) -parallel 8 -timeout 20m -p $(ATONCE) -skip '^TestTorture' $(TESTFLAGS) $(PACKAGES)
	@command -v soffice >/dev/null || echo 'NOT TESTED: LibreOffice (soffice) is missing, so nothing has opened what --excel writes' >&2
	@command -v pg_ctl >/dev/null || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || echo 'NOT TESTED: PostgreSQL is missing, so the store has not run on a server' >&2
	@command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || echo 'NOT TESTED: HAProxy is missing, so nothing has balanced listeners' >&2
	@for shell in zsh fish; do command -v $$shell >/dev/null || echo "NOT TESTED: $$shell is missing, so nothing has completed in it" >&2; done

quick: ## test what differs from main, in about 30 seconds (BASE=REF for another base)
	BASE='$(BASE)' .ci/quick

# Apart from the other tests, which it would slow down more than it waits. Once is enough for a browser: on one store
# and without the race detector.
BROWSER = CHROMIUM=required AXE='$(CURDIR)/$(AXEDIR)/axe.min.js' go test -vet=off -tags browser -count=1 -timeout 10m $(TESTFLAGS)
TIMED   = ^TestBrowser$$/^(arrival|load)$$

test-browser: $(AXEDIR)/axe.min.js ## open the page of the inspector and the report in Chromium (needs chromium, node, npm)
	@for file in internal/inspect/page/*.js; do [ ! -f "$$file" ] || node --check --input-type=module <"$$file" || { echo "$$file" >&2; exit 1; }; done
	node --test internal/inspect/page_test/*.test.mjs >/dev/null || { node --test internal/inspect/page_test/*.test.mjs; exit 1; }
	$(BROWSER) -parallel 4 -run '^TestBrowser$$' -skip '$(TIMED)' ./cmd/waybill

# Apart from the other tests: it measures, on a machine that does nothing else.
test-browser-times: $(AXEDIR)/axe.min.js ## measure the page in Chromium while deliveries arrive
	$(BROWSER) -v -run '$(TIMED)' ./cmd/waybill

screenshots: ## take the pictures of docs/images again (needs chromium)
	@mkdir -p docs/images
	CHROMIUM=required SCREENSHOTS='$(CURDIR)/docs/images' go test -tags browser -count=1 -timeout 5m -run '^TestScreenshots$$' ./cmd/waybill

# On the server that DSN names: make test-postgres DSN=postgres://me@db.example/tests
test-postgres: test-postgres-transcripts ## run the tests of the store, and all transcripts, on PostgreSQL (DSN, else a private server)
	POSTGRES=required TEST_STORE=postgres WAYBILL_TEST_POSTGRES='$(DSN)' $(TEST) -count=1 $(TESTFLAGS) ./internal/store/... ./internal/pgtest

test-postgres-transcripts:
	POSTGRES=required TEST_STORE=postgres WAYBILL_TEST_POSTGRES='$(DSN)' $(TEST) -count=1 -parallel 8 $(TESTFLAGS) -run '^TestScripts$$' ./cmd/waybill

# The library of the store is left out of it: it would take two thirds of the
# time, and its own tests are the place to find its races. Not modernc.org/sqlite
# itself: it uses sync.Map, and the linker may take that copy, which tells the
# detector nothing, for the whole program. GORACE: at the end of a
# process the detector waits, by default for a second, for more races; transcripts
# run thousands of processes.
# TestTorture...: they run processes of a program that is built without the detector,
# so it would see only the tests themselves. TestPostgres...: the suites of a store,
# whose code is the same on a file. TestCounts, TestLearnFinds..., TestContradictions: one goroutine, for
# long. RefusedSurvive...: floods of which two others are enough. ...LibreOffice: they wait for another
# program.
# TestReadme..., TestSecrets...: what they type, transcripts type too. Packages that start no goroutine
# have no race of their own.
RACING = $$(grep -rlE --include='*.go' '^\s*go [a-z(]|\.Go\(|"sync|t\.Parallel' cmd internal | xargs -n 1 dirname | sort -u | sed 's,^,./,')

race: ## run the tests with the race detector (needs a C compiler)
	GORACE=atexit_sleep_ms=50 CGO_ENABLED=1 $(TEST) -race -parallel 8 -skip '^Test(Torture|Postgres|Readme|SecretsStayWhereTheyAreSet$$|PagesNameCommands|Counts$$|LearnFinds|Contradictions$$)|LibreOffice$$|^TestInbox$$/^RefusedSurvive(Junk|Forgeries)$$' -gcflags='modernc.org/libc=-race=false' -gcflags='modernc.org/sqlite/lib=-race=false' $(TESTFLAGS) $(filter-out ./...,$(PACKAGES)) $(RACING)

lint: $(BIN)/.golangci-lint-$(GOLANGCI_LINT) ## check the sources
	$(BIN)/golangci-lint run

fmt: $(BIN)/.golangci-lint-$(GOLANGCI_LINT) ## format the sources
	$(BIN)/golangci-lint fmt

# A package's targets share one binary: to link it takes longer than most of them. To make each new input as
# short as it can be would take most of the time.
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@packages=$$(grep -rl --include='*_test.go' '^func Fuzz' cmd internal | xargs -r -n 1 dirname | sort -u); \
	[ -n "$$packages" ] || { echo "make fuzz: no fuzz target found" >&2; exit 1; }; \
	binary=$$(mktemp) cache=$$(go env GOCACHE)/fuzz; trap 'rm -f "$$binary"' EXIT; \
	for package in $$packages; do \
		go test -c -fuzz . -o "$$binary" "./$$package" && targets=$$(cd "$$package" && "$$binary" -test.list '^Fuzz') || exit 1; \
		for target in $${targets:?}; do \
			echo "== $$package $$target"; \
			(cd "$$package" && "$$binary" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.fuzzcachedir "$$cache/$$package") || exit 1; \
		done; \
	done

# Apart from the other tests: kills and cuts are timed, and meet nothing that lives
# on a machine that is busy with something else.
test-torture: ## kill, cut, lie, fill the disk, and count, in ten minutes
	go test -vet=off -count=1 -parallel 3 -timeout 20m -run '^TestTorture' $(TESTFLAGS) ./cmd/waybill

torture: ## the same at length (hours; needs strace, and root for a small disk)
	TORTURE=full go test -vet=off -timeout 240m -run 'Torture|Synced' -v $(TESTFLAGS) ./cmd/waybill

bench: $(BIN)/.benchstat-$(BENCHSTAT) ## run the benchmarks (BENCH, BENCHTIME, COUNT) and compare with the last run
	@mkdir -p dist
	@if [ -f dist/bench.txt ]; then mv dist/bench.txt dist/bench.last.txt; fi
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -benchmem -timeout 1h ./... > dist/bench.txt; \
		status=$$?; cat dist/bench.txt; exit $$status
	@if [ -f dist/bench.last.txt ]; then $(BIN)/benchstat last=dist/bench.last.txt now=dist/bench.txt; fi

completions: build ## write the completion scripts that are kept in completions/
	@mkdir -p completions
	./waybill$(EXE) completion bash > completions/waybill.bash
	./waybill$(EXE) completion zsh > completions/_waybill
	./waybill$(EXE) completion fish > completions/waybill.fish
	./waybill$(EXE) completion powershell > completions/waybill.ps1

man: ## write the manual pages to dist/man
	rm -rf dist/man
	go run -ldflags '$(LDFLAGS)' ./internal/manpages dist/man

snapshot: $(BIN)/.goreleaser-$(GORELEASER) ## build archives, deb and rpm into dist/, nothing published
	$(BIN)/goreleaser release --snapshot --clean

release: $(BIN)/.goreleaser-$(GORELEASER) ## publish the tag of this commit as a draft (run by .github/workflows/release.yml)
	$(BIN)/goreleaser release --clean

check-workflows: $(BIN)/.actionlint-$(ACTIONLINT) ## check .github/workflows
	$(BIN)/actionlint -shellcheck= -pyflakes=

check-release: $(BIN)/.goreleaser-$(GORELEASER)
	$(BIN)/goreleaser check

check-packages: $(BIN)/.goreleaser-$(GORELEASER) ## build deb, rpm and archive, and try each in an empty root (needs root, dpkg, rpm)
	.ci/check-packages $(BIN)/goreleaser

check-reproducible: ## build the commit in two folders and compare the binaries
	.ci/check-reproducible

test-windows: ## run the demo and transcripts under Wine (needs wine64 and gcc-mingw-w64-x86-64-win32)
	.ci/test-windows

vuln: $(BIN)/.govulncheck-$(GOVULNCHECK) ## look for known holes in what is used (asks vuln.go.dev)
	$(BIN)/govulncheck ./...

clean: ## remove what was built
	rm -rf dist waybill waybill.exe coverage.out

# One line a tool. The file says which version is in .bin, so another version
# in this Makefile is installed in its place.
$(BIN)/.golangci-lint-$(GOLANGCI_LINT):
	$(call install,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT))
$(BIN)/.goreleaser-$(GORELEASER):
	$(call install,goreleaser,github.com/goreleaser/goreleaser/v2@$(GORELEASER))
$(BIN)/.benchstat-$(BENCHSTAT):
	$(call install,benchstat,golang.org/x/perf/cmd/benchstat@$(BENCHSTAT))
$(BIN)/.govulncheck-$(GOVULNCHECK):
	$(call install,govulncheck,golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK))
$(BIN)/.actionlint-$(ACTIONLINT):
	$(call install,actionlint,github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT))

# For tests alone: it finds what keeps people from using a page.
$(AXEDIR)/axe.min.js:
	npm install --silent --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --prefix dist/axe-$(AXE) axe-core@$(AXE)

define install
@mkdir -p $(BIN) && rm -f $(BIN)/.$(1)-*
GOBIN="$(CURDIR)/$(BIN)" go install $(2)
@touch $@
endef

.PHONY: help demo build test quick test-postgres test-postgres-transcripts test-torture test-browser test-browser-times screenshots race lint fmt fuzz torture bench completions man snapshot release check-workflows check-release check-packages check-reproducible test-windows vuln clean
