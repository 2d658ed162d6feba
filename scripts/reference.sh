#!/usr/bin/env bash
# Lets the compiler of Apache Thrift judge the files in thrift/idl/testdata: it must accept what
# thrift/idl accepts and reject what thrift/idl rejects, except for files that give a reason in
# their first line. SLIPSTREAM_THRIFT names the compiler; if it is not set, the script uses the
# one in PATH, and installs it on Debian or Ubuntu as root if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${SLIPSTREAM_THRIFT:-$(command -v thrift || true)}
if [ -z "$program" ]; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo 'reference: install the Thrift compiler (Debian package thrift-compiler), or set SLIPSTREAM_THRIFT' >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends thrift-compiler >/dev/null
	program=$(command -v thrift)
fi
SLIPSTREAM_THRIFT=$program "${GO:-go}" test -count=1 -v -run 'TestReferenceCompilerAgrees$' ./thrift/idl
