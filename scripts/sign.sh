#!/usr/bin/env bash
# sign.sh FILE COMMENT signs both with minisign: the signature lies beside the file, with
# .minisig added, and the comment is in it. RELEASE_KEY is the file of the secret key and
# RELEASE_KEY_PASSWORD its password, if it has one. Without RELEASE_KEY nothing is signed,
# and that is said.
set -euo pipefail
file=$1 comment=$2
rm -f "$file.minisig" # of what the file was before
if [ -z "${RELEASE_KEY:-}" ]; then
	echo "sign: $file is NOT SIGNED, because RELEASE_KEY names no secret key"
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
echo "sign: $file.minisig, to be verified with the public key $(tail -n 1 "$work/public")"
