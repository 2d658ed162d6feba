#!/usr/bin/env bash
# Runs all tests of the Redis client, including slow ones, and the tests that use PostgreSQL with
# each supported major version, one after the other. At the end it prints one line for each version.
# Usage: scripts/matrix.sh [14 18 ...]
set -uo pipefail
cd "$(dirname "$0")/.."

versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(14 15 16 17 18)

# Every test outside of the origin that starts a PostgreSQL has a name that matches; a test
# at the root of the repository checks that.
pattern='Postgres|PG|PgBouncer'
packages=(./gateway ./examples/config ./internal/testkit)
blackbox=(./freshness ./judges ./operation) # of the module test

log=$(mktemp)
trap 'rm -f "$log"' EXIT
summary=()
failed=0
# Includes TestRedis8, TestRedis8ClusterAndSentinel, and the tests that make test skips.
echo "== Redis 7 and 8"
if SLIPSTREAM_MATRIX=1 "${GO:-go}" test -count=1 -timeout 30m ./redis; then
	summary+=("ok     Redis 7 and 8")
else
	summary+=("FAILED Redis 7 and 8")
	failed=1
fi
for version in "${versions[@]}"; do
	echo "== PostgreSQL $version"
	began=$SECONDS
	if ! folder=$(scripts/postgres.sh "$version"); then
		summary+=("PostgreSQL $version: not installed")
		failed=1
		continue
	fi
	{
		SLIPSTREAM_POSTGRES=$folder "${GO:-go}" test -p 1 -count=1 -timeout 30m ./internal/gateway/origin/postgres
		SLIPSTREAM_POSTGRES=$folder "${GO:-go}" test -p 1 -count=1 -timeout 60m -run "$pattern" "${packages[@]}"
		SLIPSTREAM_POSTGRES=$folder "${GO:-go}" test -C test -p 1 -count=1 -timeout 60m -run "$pattern" "${blackbox[@]}"
	} 2>&1 | tee "$log"
	tests=$(grep -oE '^--- FAIL: [^ ]+' "$log" | cut -d' ' -f3 | sort -u | paste -sd' ')
	line="$("$folder/postgres" --version | cut -d' ' -f2-), $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
	if grep -qE '^(FAIL|panic:)' "$log" || ! grep -q '^ok' "$log"; then
		summary+=("FAILED $line: ${tests:-no named test}")
		failed=1
	else
		summary+=("ok     $line")
	fi
done

echo
echo '== matrix'
printf '%s\n' "${summary[@]}"
exit "$failed"
