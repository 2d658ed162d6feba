#!/usr/bin/env bash
# Fails if make generate changes a file, tracked or not: committed generated files must be the
# output of the current generators.
set -euo pipefail
state() { git ls-files -co --exclude-standard -z | xargs -0 sha256sum --; }
before=$(state)
make --no-print-directory generate
if ! changed=$(diff <(echo "$before") <(state)); then
	echo "make generate changed these files:"
	awk '/^[<>]/ { print "  " $3 }' <<<"$changed" | sort -u
	exit 1
fi
