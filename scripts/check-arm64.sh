#!/usr/bin/env bash
# Vets the packages that have assembly for arm64 and runs their tests for arm64, on other processors
# in the emulator qemu-user. If qemu-user is missing, the script reports that the tests were
# skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
packages=(./thrift/internal/bulk)

export GOOS=linux GOARCH=arm64 CGO_ENABLED=0
"$go" vet "${packages[@]}"
if [ "$(uname -sm)" = "Linux aarch64" ]; then
	"$go" test -count=1 "${packages[@]}"
	exit
fi
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if [ -z "$emulator" ]; then
	echo 'check-arm64: vetted, but the tests for arm64 were skipped, because qemu-aarch64 is missing (Debian package qemu-user)'
	exit
fi
"$go" test -count=1 -exec "$emulator" "${packages[@]}"
