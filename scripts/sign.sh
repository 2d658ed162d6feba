#!/usr/bin/env bash
# sign.sh FILE COMMENT signs the file and the comment with minisign. It writes the signature, which
# includes the comment, to FILE.minisig. RELEASE_KEY is the file of the secret key and
# RELEASE_KEY_PASSWORD its password, if it has one. Without RELEASE_KEY, nothing is signed, and a
# message says so.
set -euo pipefail
file=$1 comment=$2
rm -f "$file.minisig" # the signature of an earlier version
if [ -z "${RELEASE_KEY:-}" ]; then
	echo "sign: $file is NOT SIGNED, because RELEASE_KEY is not set"
	exit 0
fi
minisign() { "${GO:-go}" tool -modfile="$(dirname "$0")/../tools/go.mod" minisign "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
minisign -S -s "$RELEASE_KEY" -m "$file" -t "$comment" <<<"${RELEASE_KEY_PASSWORD:-}" >/dev/null
minisign -R -s "$RELEASE_KEY" -p "$work/public" <<<"${RELEASE_KEY_PASSWORD:-}" >/dev/null
if ! minisign -V -q -p "$work/public" -m "$file"; then
	rm "$file.minisig"
	echo "sign: $file is NOT SIGNED, because its signature cannot be verified" >&2
	exit 1
fi
echo "sign: wrote $file.minisig; verify it with the public key $(tail -n 1 "$work/public")"
