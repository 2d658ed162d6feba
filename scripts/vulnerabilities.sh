#!/usr/bin/env bash
# Runs govulncheck. Without a way to its database there is nothing to compare
# with, so that one case is said and passed over; everything else fails.
set -euo pipefail
if output=$(go tool -modfile=tools/go.mod govulncheck ./... 2>&1); then
	echo "$output"
	exit 0
fi
if grep -q '^govulncheck: fetching vulnerabilities: ' <<<"$output"; then
	echo "govulncheck skipped: vulnerability database not reachable"
	exit 0
fi
echo "$output"
exit 1
