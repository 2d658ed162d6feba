#!/usr/bin/env bash
# Runs govulncheck on the modules that users build. It fails if there are vulnerabilities, and also
# if the vulnerability database cannot be reached, because a check that did not run has not passed.
# OFFLINE=1 accepts only the latter.
set -euo pipefail
cd "$(dirname "$0")/.."
unreachable=0
for module in . slipstreamotel thrift/apache examples/foo; do
	if output=$(${GO:-go} tool -modfile=tools/go.mod govulncheck -C "$module" ./... 2>&1); then
		echo "$output"
		continue
	fi
	echo "$output"
	if ! grep -q '^govulncheck: fetching vulnerabilities: ' <<<"$output"; then
		exit 1
	fi
	unreachable=1
done
if [ "$unreachable" = 0 ]; then
	exit 0
fi
if [ "${OFFLINE:-}" = 1 ]; then
	echo "vulnerabilities: skipped, because the database cannot be reached and OFFLINE=1"
	exit 0
fi
echo "vulnerabilities: not checked, because the database cannot be reached; on a machine without a network, run make check OFFLINE=1" >&2
exit 1
