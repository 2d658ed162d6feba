#!/usr/bin/env bash
# Compares the Go benchmarks of the working tree with those of another commit:
#   scripts/bench-micro.sh REF [package ...]
# Both are built first and run alternately, round by round, so that a machine that warms up or slows
# down during the run affects both.
set -euo pipefail
ref=$1
shift
rounds=${ROUNDS:-10}
bench=${BENCH:-.}
here=$PWD
work=$(mktemp -d)
cleanup() {
	git worktree remove --force "$work/old" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/old" "$ref"

if [ $# -eq 0 ]; then
	# Only packages that have benchmarks.
	mapfile -t files < <(git grep -lE '^func Benchmark' -- '*_test.go' ':!bench' ':!tools')
	mapfile -t packages < <(for f in "${files[@]}"; do echo "./$(dirname "$f")"; done | sort -u)
else
	packages=("$@")
fi

built=()
for p in "${packages[@]}"; do
	name=$(echo "${p#./}" | tr / _)
	[ -d "$work/old/$p" ] || { echo "bench-micro: $p is new since $ref"; continue; }
	(cd "$work/old" && go test -c -o "$work/$name.old" "$p")
	go test -c -o "$work/$name.new" "$p"
	# A package without tests has no binary.
	if [ -e "$work/$name.old" ] && [ -e "$work/$name.new" ]; then built+=("$p"); fi
done
for ((round = 1; round <= rounds; round++)); do
	for p in "${built[@]}"; do
		name=$(echo "${p#./}" | tr / _)
		# Tests look for testdata in the folder of their package.
		(cd "$work/old/$p" && "$work/$name.old" -test.run '^$' -test.bench "$bench" -test.benchmem -test.benchtime "${BENCHTIME:-200ms}") >>"$work/old.txt"
		(cd "$here/$p" && "$work/$name.new" -test.run '^$' -test.bench "$bench" -test.benchmem -test.benchtime "${BENCHTIME:-200ms}") >>"$work/new.txt"
	done
	echo "bench-micro: round $round of $rounds done" >&2
done
go tool -modfile=tools/go.mod benchstat "$ref=$work/old.txt" "tree=$work/new.txt"
