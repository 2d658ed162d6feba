#!/usr/bin/env bash
# Installs python-tarantool: a Python that has the package tarantool, the client of the
# server's makers, which tests let read what ours writes and write what it reads. Debian has
# no package of it, so it comes from PyPI, into a virtual environment of its own: the system's
# Python stays as it is. The version is pinned; pip checks every file against the index.
set -euo pipefail

folder=/usr/local/lib/slipstream-python-tarantool
program=/usr/local/bin/python-tarantool
wanted='tarantool==1.3.0'

fail() {
	echo "prepare: python-tarantool is missing, a Python with the package tarantool that tests start: $1" >&2
	echo 'prepare: put one into PATH under this name, or run as root on Debian or Ubuntu' >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || fail 'only root can install it'
if ! python3 -c 'import ensurepip' 2>/dev/null; then
	command -v apt-get >/dev/null || fail 'its Python has no ensurepip, and there is no apt-get'
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
fi
# A python3 that is before the system's in PATH may still have none.
python=python3
"$python" -c 'import ensurepip' 2>/dev/null || python=/usr/bin/python3

echo "prepare: installing $wanted of PyPI in $folder"
rm -rf "$folder"
"$python" -m venv "$folder" || fail 'no virtual environment can be made'
"$folder/bin/pip" install -q --disable-pip-version-check "$wanted" || fail 'it cannot be had from PyPI'
mkdir -p "${program%/*}"
rm -f "$program"
# A link would be taken for a Python without the environment.
printf '#!/bin/sh\nexec %s/bin/python "$@"\n' "$folder" >"$program"
chmod 755 "$program"
(cd / && "$program" -c 'import tarantool; tarantool.Connection') || fail 'what was installed does not work'
echo "prepare: installed $wanted as python-tarantool"
