#!/usr/bin/env bash
# Installs redis-server-8. The tests run with Redis 7.0 of Debian 12, and some of them also with
# this server, because newer servers differ in commands and behavior. The program comes from Debian
# 13, even on other releases, with the libraries and the loader that it was built for, in a separate
# folder; system packages are not changed.
#
# Only the minor version is pinned, Redis 8.0 of Debian 13, not the file, because Debian's archive
# keeps only the latest build. apt checks the SHA-256 of every file against the index, and the index
# against Debian's key.
set -euo pipefail

folder=/usr/local/lib/slipstream-redis-8
program=/usr/local/bin/redis-server-8
release=trixie
line=8.0
# redis-tools contains the program; redis-server contains only a link to it. The other packages are
# the libraries that it is linked with.
packages='redis-tools libc6 libssl3t64 libstdc++6 libgcc-s1 libatomic1 libjemalloc2 liblzf1 libsystemd0 libcap2 libzstd1 zlib1g'

fail() {
	echo "prepare: tests need redis-server-8, a server of Redis 8: $1" >&2
	echo 'prepare: put it in PATH under this name, or run as root on Debian' >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || fail 'only root can install it'

# The server of the system may be new enough.
if own=$(command -v redis-server) && "$own" --version | grep -qE '^Redis server v=([89]|[1-9][0-9])\.'; then
	mkdir -p "${program%/*}"
	ln -sf "$own" "$program"
	echo "prepare: redis-server-8 is $own"
	exit 0
fi

command -v apt-get >/dev/null || fail 'there is no apt-get'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt downloads as a separate user

# The mirror is the one from which this machine gets its packages.
indexes() { apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages'; }
mirror() { indexes | awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ && !n++ { print $4 }'; }
archive=$(mirror)
if [ -z "$archive" ]; then # the indexes may be missing
	apt-get update -qq
	archive=$(mirror)
fi
[ -n "$archive" ] || fail 'the packages of this machine do not come from Debian'

keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || fail "Debian's keys are not in $keys"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/root"
echo "deb [signed-by=$keys] $archive $release main" >"$work/sources.list"
apt() { # with separate indexes, as if nothing were installed
	apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o Dir::State::lists="$work/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}
echo "prepare: installing redis-server-8 from Debian $release in $folder"
apt update || fail "downloading the index of Debian $release failed"
chown -R _apt "$work/debs" 2>/dev/null || true
# The list is split into words on purpose.
# shellcheck disable=SC2086
(cd "$work/debs" && apt download $packages) || fail "downloading its packages from Debian $release failed"
for deb in "$work"/debs/*.deb; do
	dpkg-deb -x "$deb" "$work/root"
done

# Only the libraries that the program is linked with are kept. The loader lists them.
libraries=$(dirname "$(find "$work/root/usr/lib" -name libc.so.6)")
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux*.so.*')
rm -rf "$folder"
mkdir -p "$folder" "${program%/*}"
cp -L "$loader" "$folder/loader"
cp -L "$work/root/usr/bin/redis-check-rdb" "$folder/redis-server"
"$loader" --library-path "$libraries" --list "$folder/redis-server" | awk '$2 == "=>" && $1 !~ /\// { print $3 }' >"$work/linked"
while read -r library; do
	case $library in
	"$libraries"/*) cp -L "$library" "$folder/" ;;
	*) fail "the program would use $library, which is not from $release" ;;
	esac
done <"$work/linked"
cat >"$work/program" <<-END
	#!/bin/sh
	exec $folder/loader --library-path $folder $folder/redis-server "\$@"
END
sh "$work/program" --version | grep -q "^Redis server v=$line\." || fail "the installed program is not Redis $line"
install -m 755 "$work/program" "$program"
echo "prepare: installed $("$program" --version | cut -d' ' -f1-3) as redis-server-8"
