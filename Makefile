# Parley's commands; `make help` lists them. Go 1.21 or newer and make are all
# that a new machine needs.

# go.mod names the Go release: fetch it where this one is older, even if the
# machine says "local", and keep a newer one.
ifeq ($(filter-out local,$(GOTOOLCHAIN)),)
export GOTOOLCHAIN := auto
endif

# A checkout of another user fails stamping, so the version comes by ldflags.
export GOFLAGS := $(strip $(filter-out -buildvcs=%,$(shell go env GOFLAGS)) -buildvcs=false)
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

TOOL := go tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help run chat build test tools check lint mutants bench

help: ## list these commands
	@grep -E '^[a-z]+:.* ## ' Makefile | sed -E 's/^([a-z]+):.* ## /make \1|/' | awk -F'|' '{printf "%-12s %s\n", $$1, $$2}'

run: build ## start the server, which prints a link to its page; ARGS are its flags
	@exec bin/parley serve --link $(ARGS)

chat: build ## talk in the terminal; ARGS are its flags
	@exec bin/parley chat $(ARGS)

build: ## build bin/parley
	@CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/parley ./cmd/parley

test: ## run every test, with the race detector where it works; ARGS are flags of go test
	@go run ./internal/testrun $(ARGS) ./...

tools: ## install what the tests want, where this may
	@go run ./internal/testrun tools

# Without cgo, so that the linters and the build share one set of compiled packages.
check: export CGO_ENABLED := 0
check: ## format, vet, staticcheck, tidy, layers, and a build without cgo
	@unformatted=$$($(TOOL) gofumpt -l .) && if [ -n "$$unformatted" ]; then \
		echo "not formatted, run: $(TOOL) gofumpt -w ."; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...
	go mod tidy -diff
	go mod tidy -C tools -diff
	go test .
	go build -o /dev/null ./...

lint: ## golangci-lint; its first build takes minutes, so check leaves it out
	go tool -modfile=tools/lint/go.mod golangci-lint run

mutants: ## take out each guard of C-44 and see its test fail
	@go run ./internal/mutants $(ARGS)

bench: ## measure speed and size; ARGS are its flags
	go run ./internal/bench $(ARGS)
