#!/usr/bin/env bash
# Runs the tests of this module, those of the modules slipstreamotel, thrift/apache and examples/foo, and those
# of the module test, which start the command: it is built once for them. Without -race, it also builds the
# benchmarks, and lets a rival use the server for tests. Usage: scripts/test.sh [-race]
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
limit=30m
if [ "${1:-}" = -race ]; then
	limit=60m
fi

folder=$(mktemp -d)
beside=
trap '[ -z "$beside" ] || kill "$beside" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$go" build "$@" -o "$folder/slipstream" ./cmd/slipstream

# Tests of the command wait most of the time, so they run beside the others.
echo "$go test $* -timeout $limit ./...; beside it: $go test -C test $* -p 1 -timeout $limit ./..."
SLIPSTREAM_PROGRAM=$folder/slipstream "$go" test -C test "$@" -p 1 -timeout "$limit" ./... >"$folder/log" 2>&1 &
beside=$!
status=0
"$go" test "$@" -timeout "$limit" ./... || status=$?
"$go" test -C slipstreamotel "$@" -timeout "$limit" ./... || status=$?
"$go" test -C thrift/apache "$@" -timeout "$limit" ./... || status=$?
"$go" test -C examples/foo "$@" -timeout "$limit" ./... || status=$?
if [ $# -eq 0 ]; then
	(cd bench && "$go" vet ./... && "$go" build ./... && "$go" test -run '^TestPeer' ./tarantool) || status=$?
fi
wait "$beside" || status=$?
beside=
cat "$folder/log"
exit "$status"
