#!/usr/bin/env bash
# Builds the documentation site in site/ from the Markdown files, with Sphinx (docs/site), and
# checks every page in Chromium: links, titles, images, widths, the search. Warnings are errors.
# Sphinx is installed in a Python virtual environment in the user's cache.
#   SLIPSTREAM_SCREENSHOTS=/dir scripts/docs.sh    # also writes pictures of some pages
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || packages+=(chromium)
if [ ${#packages[@]} -gt 0 ]; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "docs: install ${packages[*]}, or run as root on Debian or Ubuntu" >&2
		exit 1
	fi
	echo "docs: installing ${packages[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	echo "docs: $(python3 --version) is too old, Sphinx needs Python 3.11" >&2
	exit 1
fi

tools="${XDG_CACHE_HOME:-$HOME/.cache}/slipstream-docs"
if ! cmp -s docs/site/requirements.txt "$tools/installed"; then
	echo "docs: installing docs/site/requirements.txt in $tools"
	rm -rf "$tools"
	mkdir -p "$tools"
	python3 -m venv "$tools/venv"
	"$tools/venv/bin/pip" install -q --disable-pip-version-check --require-hashes --only-binary :all: -r docs/site/requirements.txt
	cp docs/site/requirements.txt "$tools/installed"
fi

# All pages are read again, because Sphinx warns only about pages that it reads.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rm -rf site
"$tools/venv/bin/sphinx-build" -q --fail-on-warning --keep-going -j auto -c docs/site -d "$folder" -b html . site

# The test does not start the command, so it is not built.
SLIPSTREAM_PROGRAM=none SLIPSTREAM_SITE=$PWD/site "${GO:-go}" test -C test -count=1 -run 'TestSite' ./browser
echo "docs: file://$PWD/site/index.html"
