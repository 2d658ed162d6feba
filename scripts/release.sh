#!/usr/bin/env bash
# Builds a release of the current commit in dist/: for each platform a static binary with its bill
# of materials (CycloneDX), packages for Debian and Red Hat, completion scripts, the manual page,
# SHA256SUMS, and the signature of SHA256SUMS if there is a key. The release is built from a clone,
# without changes in the working tree. Go writes the version (the tag of the commit, or a
# pseudo-version) into the binaries. Everything is built twice, the second time in another folder
# and without a cache, and the bytes are compared.
#
#   RELEASE_PLATFORMS      "linux/amd64 linux/arm64" builds only for these
#   RELEASE_KEY            file of a secret key of minisign; without it the release is not signed
#   RELEASE_KEY_PASSWORD   its password, if it has one
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
platforms=${RELEASE_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 freebsd/amd64 freebsd/arm64}
root=$PWD
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# Neither the environment nor the time may affect the bytes of the binaries.
export CGO_ENABLED=0 GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 GOTOOLCHAIN=local
SOURCE_DATE_EPOCH=$(git show -s --format=%ct "$commit")
export SOURCE_DATE_EPOCH

binary() { # platform
	local name=slipstream-${1%/*}-${1#*/}
	[ "${1%/*}" != windows ] || name+=.exe
	echo "$name"
}

tool() { (cd "$root" && "$go" tool -modfile=tools/go.mod "$@"); }

compile() { # clone, folder of the binaries
	git clone -q "$root" "$1"
	git -C "$1" checkout -q --detach "$commit"
	mkdir -p "$2"
	for platform in $platforms host; do
		echo "build $platform"
		local name=../own os='' arch=''
		if [ "$platform" != host ]; then
			name=$(binary "$platform") os=${platform%/*} arch=${platform#*/}
		fi
		(cd "$1" && GOOS=$os GOARCH=$arch \
			"$go" build -trimpath -buildvcs=true -ldflags='-s -w' -o "$2/$name" ./cmd/slipstream)
	done
}

# The other files of packages. The program writes some of them.
write() { # clone, folder, program for this machine
	"$3" completion bash >"$2/slipstream.bash"
	"$3" completion zsh >"$2/_slipstream"
	"$3" completion fish >"$2/slipstream.fish"
	"$3" completion powershell >"$2/slipstream.ps1"
	"$3" man >"$2/slipstream.1"
	for platform in $platforms; do
		name=$(binary "$platform")
		tool cyclonedx-gomod bin -json -std -noserial -notimestamp -output "$2/${name%.exe}.cdx.json" "$2/$name" 2>/dev/null
	done
}

packages() { # clone, folder
	local stage arch
	for platform in $platforms; do
		[ "${platform%/*}" = linux ] || continue
		arch=${platform#*/}
		stage=$(mktemp -d -p "$work")
		cp "$1"/deploy/package/* "$1/LICENSE" "$2/slipstream.bash" "$2/slipstream.fish" "$2/_slipstream" "$stage/"
		cp "$2/slipstream-linux-$arch" "$stage/slipstream"
		gzip -9n <"$2/slipstream.1" >"$stage/slipstream.1.gz"
		gzip -9n <"$1/CHANGELOG.md" >"$stage/CHANGELOG.md.gz"
		find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		for packager in deb rpm; do
			(cd "$stage" && ARCH=$arch VERSION=$version "$nfpm" package -f nfpm.yaml -p $packager -t "$2/slipstream-linux-$arch.$packager" >/dev/null)
		done
	done
}

compile "$work/one" "$work/first"
GOCACHE=$work/cache compile "$work/a/folder/of/another/length" "$work/a/second"
rm -rf "$work/cache"
version=$("$work/own" version --json | sed -n 's/^ *"version": "\(.*\)",$/\1/p')
nfpm=$work/nfpm
(cd tools && "$go" build -o "$nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)
for clone in "$work/one $work/first $work/own" "$work/a/folder/of/another/length $work/a/second $work/a/own"; do
	# The three words are the paths created above, which contain no blanks. shellcheck
	# disable=SC2086
	write $clone
	# shellcheck disable=SC2086
	packages $clone
done
if ! diff -r "$work/first" "$work/a/second"; then
	echo "two builds of $commit differ: the release is not reproducible"
	exit 1
fi
for platform in $platforms; do
	name=$(binary "$platform")
	if "$go" version -m "$work/first/$name" | grep -E 'vcs.modified=true|CGO_ENABLED=1'; then
		echo "$name was built from uncommitted changes, or is not static"
		exit 1
	fi
done

rm -rf dist
mv "$work/first" dist
"$work/own" version
(cd dist && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" . && cat SHA256SUMS)
scripts/sign.sh dist/SHA256SUMS "slipstream $version, commit $commit"
