#!/usr/bin/env bash
# Installs python-tarantool: a Python with the package tarantool, the official client, which tests
# use to read what our client writes, and vice versa. Debian has no such package, so it is installed
# from PyPI into a virtual environment; the system's Python is not changed. The version is pinned;
# pip checks every file against the index.
set -euo pipefail

folder=/usr/local/lib/slipstream-python-tarantool
program=/usr/local/bin/python-tarantool
wanted='tarantool==1.3.0'

fail() {
	echo "prepare: tests need python-tarantool, a Python with the package tarantool: $1" >&2
	echo 'prepare: put it in PATH under this name, or run as root on Debian or Ubuntu' >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || fail 'only root can install it'
if ! python3 -c 'import ensurepip' 2>/dev/null; then
	command -v apt-get >/dev/null || fail 'Python has no ensurepip, and there is no apt-get'
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
fi
# A python3 that precedes the system's in PATH may still lack ensurepip.
python=python3
"$python" -c 'import ensurepip' 2>/dev/null || python=/usr/bin/python3

echo "prepare: installing $wanted from PyPI in $folder"
rm -rf "$folder"
"$python" -m venv "$folder" || fail 'creating the virtual environment failed'
"$folder/bin/pip" install -q --disable-pip-version-check "$wanted" || fail 'downloading it from PyPI failed'
mkdir -p "${program%/*}"
rm -f "$program"
# A symbolic link would start Python without the environment.
printf '#!/bin/sh\nexec %s/bin/python "$@"\n' "$folder" >"$program"
chmod 755 "$program"
(cd / && "$program" -c 'import tarantool; tarantool.Connection') || fail 'the installed package does not work'
echo "prepare: installed $wanted as python-tarantool"
