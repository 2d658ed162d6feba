#!/usr/bin/env bash
# Builds the command once and runs tests with it, in both modules:
#   scripts/with-program.sh [-race] 'command line'
# Without SLIPSTREAM_PROGRAM every package of tests that runs the command links its own.
set -euo pipefail
cd "$(dirname "$0")/.."
race=()
if [ "$1" = -race ]; then
	race=(-race)
	shift
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${GO:-go}" build "${race[@]}" -o "$folder/slipstream" ./cmd/slipstream
echo "$1"
SLIPSTREAM_PROGRAM=$folder/slipstream bash -euo pipefail -c "$1"
