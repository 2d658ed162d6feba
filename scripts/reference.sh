#!/usr/bin/env bash
# Compares thrift/idl and generated code with the compiler of Apache Thrift. The compiler must
# accept the files that thrift/idl accepts and reject those that thrift/idl rejects, except for
# files that give a reason in their first line. Programs in Go and Python with the code that it
# generates, and one with thriftpy2, exchange structs and messages with ours (test/thrift). Our
# servers and clients are tested with clients and servers in Python (with the library of Apache
# Thrift and with thriftpy2), in Node.js, and of Kitex (thrift/rpc); those of Kitex also use
# Protobuf messages (thrift/rpc/protobufrpc). The declarations that the tool of Kitex generates are
# compared with ours, and the Binary protocol with that of gopkg. The tests of generated code run
# for all sets of options, and staticcheck checks the code.
#
# SLIPSTREAM_THRIFT is the path of the compiler, SLIPSTREAM_PYTHON that of a Python with its
# library, SLIPSTREAM_THRIFTPY2 that of a Python with thriftpy2, SLIPSTREAM_KITEX that of the tool
# of Kitex, and SLIPSTREAM_NODE_MODULES that of a folder with the library for Node.js. If they are
# not set, the script uses the compiler in PATH, /usr/bin/python3, thriftpy2 from PyPI in a virtual
# environment, the version of the tool in bench/thrift-codec, and the library from npm; it removes
# the last three at the end. As root on Debian or Ubuntu, it installs missing packages. The go
# command downloads the Go libraries.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${SLIPSTREAM_PYTHON:-/usr/bin/python3}
program=${SLIPSTREAM_THRIFT:-$(command -v thrift || true)}
if [ -z "$program" ] || ! "$python" -c 'import thrift.Thrift' 2>/dev/null; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo 'reference: install the Thrift compiler and its library for Python (Debian packages thrift-compiler and python3-thrift), or set SLIPSTREAM_THRIFT and SLIPSTREAM_PYTHON' >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends thrift-compiler python3-thrift >/dev/null
	program=${program:-$(command -v thrift)}
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -z "${SLIPSTREAM_KITEX:-}" ]; then
	mkdir "$folder/tool"
	sed "s#=> ROOT#=> $PWD#" bench/thrift-codec/versions.mod >"$folder/tool/go.mod"
	cp bench/thrift-codec/versions.sum "$folder/tool/go.sum"
	SLIPSTREAM_KITEX=$folder/kitex
	(cd "$folder/tool" && CGO_ENABLED=0 GOFLAGS=-mod=mod GOWORK=off "${GO:-go}" build -o "$SLIPSTREAM_KITEX" github.com/cloudwego/kitex/tool/cmd/kitex)
fi
if [ -z "${SLIPSTREAM_THRIFTPY2:-}" ]; then
	# A python3 that precedes the system's in PATH may have ensurepip even if the system's lacks it.
	maker=python3
	"$maker" -c 'import ensurepip' 2>/dev/null || maker=/usr/bin/python3
	if ! "$maker" -c 'import ensurepip' 2>/dev/null; then
		echo 'reference: install the Python module venv (Debian package python3-venv), or set SLIPSTREAM_THRIFTPY2' >&2
		exit 1
	fi
	"$maker" -m venv "$folder/python"
	"$folder/python/bin/pip" install -q --disable-pip-version-check thriftpy2==0.7.1
	SLIPSTREAM_THRIFTPY2=$folder/python/bin/python
fi
if [ -z "${SLIPSTREAM_NODE_MODULES:-}" ]; then
	if ! command -v npm >/dev/null; then
		echo 'reference: install Node.js and npm, or set SLIPSTREAM_NODE_MODULES' >&2
		exit 1
	fi
	mkdir "$folder/node"
	# The library must have the version of the compiler.
	(cd "$folder/node" && npm install --silent --no-audit --no-fund "thrift@$("$program" -version | grep -o '[0-9][0-9.]*')" >/dev/null)
	SLIPSTREAM_NODE_MODULES=$folder/node/node_modules
fi
export SLIPSTREAM_NODE_MODULES SLIPSTREAM_THRIFT=$program SLIPSTREAM_PYTHON=$python SLIPSTREAM_THRIFTPY2 SLIPSTREAM_KITEX
status=0
"${GO:-go}" test -count=1 -v -run 'TestReferenceCompilerAgrees$' ./thrift/idl || status=$?
"${GO:-go}" test -count=1 -v -timeout 30m -run 'TestGeneratedModule$' ./thrift/gen || status=$?
"${GO:-go}" test -count=1 -v -timeout 30m -run 'TestForeignClients$|TestForeignServers$|TestGenericCallsOfForeignServers$|TestProcessesOfServerWithTwoThreads$|TestRestartOfKitex$|TestRestartUnderKitexClients$|TestKitexClientsOfStreams$|TestStreamsOfKitexServers$' ./thrift/rpc || status=$?
"${GO:-go}" test -count=1 -v -timeout 30m -run 'TestForeignPrograms$' ./thrift/rpc/protobufrpc || status=$?
"${GO:-go}" test -C test -count=1 -v -timeout 30m -run 'TestForeignCode$|TestKitexDeclarations$|TestKitexJSON$|TestGopkg$' ./thrift || status=$?
exit "$status"
