#!/usr/bin/env bash
# Runs the tests of this module, of the modules slipstreamotel, thrift/apache and examples/foo, and
# of the module test. The latter start the command, which is built once for them. Without -race, the
# script also builds the benchmarks, and runs the test of our Tarantool test server with another
# client. Usage: scripts/test.sh [-race]
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

# The tests of the command wait most of the time, so they and the other modules run in parallel with
# the tests of this module.
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

echo "$go test $* -timeout $limit ./...; in parallel, one package at a time, the modules test, slipstreamotel, thrift/apache and examples/foo"
set -m # a separate process group, so that its processes end with this script
others "$@" >"$folder/log" 2>&1 &
beside=$!
set +m
# Packages are tested in this order, so that slow ones do not start last.
long=(internal/gateway/origin/postgres internal/loop redis internal/gateway/frontend/httpfront internal/pipe gateway
	cmd/slipstream internal/gateway/tier/disk thrift/rpc)
status=0
"$go" test "$@" -timeout "$limit" "${long[@]/#/./}" ./... || status=$?
wait "$beside" || status=$?
beside=
cat "$folder/log"
exit "$status"
