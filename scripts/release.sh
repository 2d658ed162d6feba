#!/usr/bin/env bash
# Builds what a release of the commit checked out consists of into dist/: a static
# binary a platform, completion scripts, SHA256SUMS. Nothing of the working tree
# gets in: it is built from a clone, whose version (the tag of the commit, or a
# pseudo-version) Go writes into the binaries itself. It is built twice, the second time
# elsewhere and with nothing cached, and the bytes are compared.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
platforms=${RELEASE_PLATFORMS:-linux/amd64 linux/arm64}
root=$PWD
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# What the environment may say of how Go compiles must not be seen in the bytes.
export CGO_ENABLED=0 GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 GOTOOLCHAIN=local

build() { # clone, folder of the binaries
	git clone -q "$root" "$1"
	git -C "$1" checkout -q --detach "$commit"
	mkdir -p "$2"
	for platform in $platforms; do
		echo "build $platform"
		(cd "$1" && GOOS=${platform%/*} GOARCH=${platform#*/} \
			"$go" build -trimpath -buildvcs=true -ldflags='-s -w' -o "$2/slipstream-${platform%/*}-${platform#*/}" ./cmd/slipstream)
	done
}

build "$work/one" "$work/first"
GOCACHE=$work/cache build "$work/a/folder/of/another/length" "$work/second"
if ! diff -r "$work/first" "$work/second"; then
	echo "two builds of $commit differ: the release is not reproducible"
	exit 1
fi

rm -rf dist
mkdir dist
for platform in $platforms; do
	name=slipstream-${platform%/*}-${platform#*/}
	cp "$work/first/$name" dist/
	if "$go" version -m "dist/$name" | grep -E 'vcs.modified=true|CGO_ENABLED=1'; then
		echo "$name is not what was committed, or not static"
		exit 1
	fi
done
own=dist/slipstream-$("$go" env GOHOSTOS)-$("$go" env GOHOSTARCH)
if [ -x "$own" ]; then
	"$own" version
	"$own" completion bash >dist/slipstream.bash
	"$own" completion zsh >dist/_slipstream
	"$own" completion fish >dist/slipstream.fish
fi
cd dist
sha256sum -- * >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" .
cat SHA256SUMS
