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
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$go" build "$@" -o "$folder/slipstream" ./cmd/slipstream

# The tests of the command wait most of the time, so they and the other modules run beside this module's tests.
others() {
	local status=0
	SLIPSTREAM_PROGRAM=$folder/slipstream "$go" test -C test "$@" -p 1 -timeout "$limit" ./... || status=$?
	for module in slipstreamotel thrift/apache examples/foo; do
		"$go" test -C "$module" "$@" -p 1 -timeout "$limit" ./... || status=$?
	done
	if [ $# -eq 0 ]; then
		(cd bench && "$go" vet ./... && "$go" build ./... && "$go" test -run '^TestPeer' ./tarantool) || status=$?
	fi
	return "$status"
}

echo "$go test $* -timeout $limit ./...; beside it, one package at a time, the modules test, slipstreamotel, thrift/apache and examples/foo"
set -m # a process group of its own, so that what it starts ends with this script
others "$@" >"$folder/log" 2>&1 &
beside=$!
set +m
# Packages are tested in this order, so those that take long are not the last ones to begin.
long=(internal/gateway/origin/postgres internal/loop redis internal/gateway/frontend/httpfront internal/pipe gateway
	cmd/slipstream internal/gateway/tier/disk thrift/rpc)
status=0
"$go" test "$@" -timeout "$limit" "${long[@]/#/./}" ./... || status=$?
wait "$beside" || status=$?
beside=
cat "$folder/log"
exit "$status"
