#!/usr/bin/env bash
# Tests the HTTP frontend with REDbot, schemathesis, sqlmap and slowhttptest, the Redis protocol
# with redis-benchmark and hiredis (see internal/testkit/judges), and the alerts in deploy with
# promtool. The first two are installed in a Python virtual environment in the user's cache, the
# others from Debian packages.
#   scripts/judges.sh [-run pattern]
set -euo pipefail
cd "$(dirname "$0")/.."

# The versions are pinned, because other versions may report other problems. httplint contains
# REDbot's rules.
wanted='redbot==2.7.1
httplint==2026.10.4
schemathesis==4.32.5'

packages=()
command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
for p in sqlmap slowhttptest; do
	command -v "$p" >/dev/null || packages+=("$p")
done
command -v redis-benchmark >/dev/null || packages+=(redis-tools)
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v promtool >/dev/null || packages+=(prometheus)
[ -e /usr/include/hiredis/hiredis.h ] || packages+=(libhiredis-dev)
if [ ${#packages[@]} -gt 0 ]; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "judges: install ${packages[*]}, or run as root on Debian or Ubuntu" >&2
		exit 1
	fi
	echo "judges: installing ${packages[*]}"
	apt-get update -qq
	# Runlevel 1 tells invoke-rc.d to start no service.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

tools="${XDG_CACHE_HOME:-$HOME/.cache}/slipstream-judges"
if [ "$(cat "$tools/installed" 2>/dev/null || true)" != "$wanted" ]; then
	echo "judges: installing $(tr '\n' ' ' <<<"$wanted")in $tools"
	rm -rf "$tools"
	mkdir -p "$tools"
	python3 -m venv "$tools/venv"
	# The list is split into words on purpose.
	# shellcheck disable=SC2086
	"$tools/venv/bin/pip" install -q --disable-pip-version-check $wanted
	echo "$wanted" >"$tools/installed"
fi

(cd deploy/prometheus && promtool check rules slipstream.rules.yml && promtool test rules slipstream.test.yml)

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
${GO:-go} build -o "$built/" ./cmd/slipstream ./internal/testkit/judges
"$built/judges" -slipstream "$built/slipstream" -python "$tools/venv/bin" "$@"
