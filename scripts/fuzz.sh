#!/usr/bin/env bash
# Runs every fuzz target of the modules for the given time: go test takes one
# target of one package at a time.
set -euo pipefail
fuzztime=${1:-30s}

found=0
for module in . slipstreamotel test; do
	for package in $(go list -C "$module" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
		# The last line of -list is the package's own "ok".
		for target in $(go test -C "$module" -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
			found=$((found + 1))
			echo "== $package $target for $fuzztime"
			# Without its own bound the minimiser may take all of the time.
			go test -C "$module" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 50x "$package"
		done
	done
done
if [ "$found" -eq 0 ]; then
	echo "fuzz: no fuzz target found" >&2
	exit 1
fi
echo "== $found targets ran"
