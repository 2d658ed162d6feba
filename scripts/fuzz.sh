#!/usr/bin/env bash
# Runs every fuzz target of the modules for the given time, one after the other, because go test
# accepts only one target at a time.
set -euo pipefail
fuzztime=${1:-30s}

found=0
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Fuzzes one target. If the time ends while a worker is busy, the go command sometimes reports the
# failure "context deadline exceeded", without a failing input. Then the target runs again.
fuzz() {
	local again
	for again in 1 2 3; do
		# Without a bound, the minimizer could use all of the time.
		if go test -C "$1" -run '^$' -fuzz "^$3\$" -fuzztime "$fuzztime" -fuzzminimizetime 50x "$2" 2>&1 | tee "$log"; then
			return 0
		fi
		if grep -q 'Failing input written' "$log" || ! grep -qx '    context deadline exceeded' "$log"; then
			return 1
		fi
	done
	return 1
}

for module in . slipstreamotel thrift/apache examples/foo test; do
	for package in $(go list -C "$module" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
		# The last line of -list is the package's own "ok".
		for target in $(go test -C "$module" -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
			found=$((found + 1))
			echo "== $package $target for $fuzztime"
			fuzz "$module" "$package" "$target" || failed+=("$package $target")
		done
	done
done
if [ "$found" -eq 0 ]; then
	echo "fuzz: no fuzz target found" >&2
	exit 1
fi
echo "== $found targets ran"
if [ "${#failed[@]}" -gt 0 ]; then
	printf 'fuzz: %s failed\n' "${failed[@]}" >&2
	exit 1
fi
