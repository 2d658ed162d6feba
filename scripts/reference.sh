#!/usr/bin/env bash
# Compares thrift/idl and generated code with the compiler of Apache Thrift. It must accept what
# thrift/idl accepts and reject what thrift/idl rejects, except for files that give a reason in
# their first line. Programs in Go and Python with the code that it generates, and one with thriftpy2,
# exchange structs and messages with ours (test/thrift).
#
# SLIPSTREAM_THRIFT names the compiler, SLIPSTREAM_PYTHON a Python that has its library, and
# SLIPSTREAM_THRIFTPY2 a Python that has thriftpy2. If they are not set, the script uses the compiler
# in PATH, /usr/bin/python3, and thriftpy2 of PyPI in a virtual environment that it removes again. It
# installs what Debian or Ubuntu have, as root. The Go libraries are modules that the go command
# downloads.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${SLIPSTREAM_PYTHON:-/usr/bin/python3}
program=${SLIPSTREAM_THRIFT:-$(command -v thrift || true)}
if [ -z "$program" ] || ! "$python" -c 'import thrift' 2>/dev/null; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo 'reference: install the Thrift compiler and its library for Python (Debian packages thrift-compiler and python3-thrift), or set SLIPSTREAM_THRIFT and SLIPSTREAM_PYTHON' >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends thrift-compiler python3-thrift >/dev/null
	program=${program:-$(command -v thrift)}
fi
if [ -z "${SLIPSTREAM_THRIFTPY2:-}" ]; then
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	# A python3 that is before the system's in PATH may have ensurepip although the system's has not.
	maker=python3
	"$maker" -c 'import ensurepip' 2>/dev/null || maker=/usr/bin/python3
	if ! "$maker" -c 'import ensurepip' 2>/dev/null; then
		echo 'reference: Python makes no virtual environments (Debian package python3-venv); install it, or set SLIPSTREAM_THRIFTPY2' >&2
		exit 1
	fi
	"$maker" -m venv "$folder"
	"$folder/bin/pip" install -q --disable-pip-version-check thriftpy2==0.7.1
	SLIPSTREAM_THRIFTPY2=$folder/bin/python
fi
export SLIPSTREAM_THRIFT=$program SLIPSTREAM_PYTHON=$python SLIPSTREAM_THRIFTPY2
status=0
"${GO:-go}" test -count=1 -v -run 'TestReferenceCompilerAgrees$' ./thrift/idl || status=$?
"${GO:-go}" test -C test -count=1 -v -timeout 30m -run 'TestForeignCode$' ./thrift || status=$?
exit "$status"
