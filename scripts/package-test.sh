#!/usr/bin/env bash
# Verifies the output of make release: checksums, bills of materials, signing with a temporary key,
# and the packages. The Debian package is installed in a clean root, where the script starts the
# gateway as the user and with the configuration of the package, requests a document, and purges the
# package. The Red Hat package is installed in another root. Requires root, because installing
# packages does.
set -euo pipefail
cd "$(dirname "$0")/.."
export GO=${GO:-go}
arch=$("$GO" env GOHOSTARCH)
name=slipstream-linux-$arch

fail() {
	echo "package-test: $*" >&2
	exit 1
}
step() { echo "== $*"; }
# expect NAME COMMAND... fails with NAME if the command fails.
expect() {
	local what=$1
	shift
	"$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$what"; }
}
refuse() {
	local what=$1
	shift
	! "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$what"; }
}

[ "$(id -u)" -eq 0 ] || fail 'only root can install packages'
packages=()
for p in mmdebstrap:mmdebstrap rpm:rpm systemd-analyze:systemd man:man-db curl:curl ip:iproute2; do
	command -v "${p%:*}" >/dev/null || packages+=("${p#*:}")
done
if [ ${#packages[@]} -gt 0 ]; then
	echo "package-test: installing ${packages[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf --one-file-system "$work"' EXIT

if [ ! -e "dist/$name.deb" ] || ! "dist/$name" version --json | grep -q "$(git rev-parse HEAD)"; then
	step 'release of the commit checked out'
	RELEASE_PLATFORMS=${RELEASE_PLATFORMS:-linux/$arch} scripts/release.sh
fi

step checksums
(cd dist && expect 'checksums' sha256sum --check --strict SHA256SUMS)
for file in dist/*; do
	[[ $file == */SHA256SUMS* ]] || grep -q "  ${file#dist/}\$" dist/SHA256SUMS || fail "$file is not in SHA256SUMS"
done

step 'bills of materials'
for sbom in dist/*.cdx.json; do
	binary=${sbom%.cdx.json}
	[ -e "$binary" ] || binary+=.exe
	"$GO" version -m "$binary" | awk '$1 == "dep" { print $2 "@" $3 }' | sort >"$work/has"
	grep -o '"purl": "pkg:golang/[^?"]*' "$sbom" | sed 's,.*pkg:golang/,,' | grep -v -e '^std@' -e '^github.com/slipstream-go/slipstream@' | sort >"$work/says"
	[ -s "$work/has" ] || fail "$binary has no modules"
	diff "$work/has" "$work/says" || fail "$sbom does not list the modules of $binary"
done

step signature
minisign() { "$GO" tool -modfile=tools/go.mod minisign "$@"; }
for key in one two; do
	minisign -G -W -p "$work/$key.pub" -s "$work/$key.key" >/dev/null
done
cp dist/SHA256SUMS "$work/sums"
expect 'not signed with a key' env RELEASE_KEY="$work/one.key" scripts/sign.sh "$work/sums" 'slipstream v0'
expect 'the signature is not accepted' minisign -V -p "$work/one.pub" -m "$work/sums"
grep -q 'trusted comment: slipstream v0' "$work/sums.minisig" || fail 'the signature has no trusted comment'
refuse 'the signature of another key was accepted' minisign -V -p "$work/two.pub" -m "$work/sums"
sed -i '1s/^./x/' "$work/sums"
refuse 'the signature of another text was accepted' minisign -V -p "$work/one.pub" -m "$work/sums"
refuse 'signed although the file of RELEASE_KEY does not exist' env RELEASE_KEY="$work/none" scripts/sign.sh "$work/sums" 'slipstream v0'
env -u RELEASE_KEY scripts/sign.sh "$work/sums" 'slipstream v0' | grep -q 'NOT SIGNED' || fail 'there is no message that the release is not signed'

step 'clean root'
mirrors=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages')
read -r mirror release <<<"$(awk '$1 ~ /^(Debian|Ubuntu)$/ && $2 == "main" && $3 !~ /-/ && !n++ { print $4, $3 }' <<<"$mirrors")"
[ -n "$mirror" ] || fail 'the packages of this machine come neither from Debian nor from Ubuntu'
expect 'creating the clean root failed' mmdebstrap --variant=apt --include=passwd "$release" "$work/root" "$mirror"
cp -a "$work/root" "$work/red"
root=$work/root

step "install $name.deb"
cp "dist/$name.deb" "$root/tmp/"
expect 'not installed' chroot "$root" dpkg -i "/tmp/$name.deb"
[ "$(chroot "$root" dpkg-query -W -f '${Status}' slipstream)" = 'install ok installed' ] || fail 'not installed'
user=$(chroot "$root" getent passwd slipstream) || fail 'there is no user slipstream'
[[ $user == slipstream:x:*:*/var/lib/slipstream:/usr/sbin/nologin && $user != *:x:0:* ]] || fail "the user is $user"
[ "$(chroot "$root" stat -c '%U %a' /var/lib/slipstream)" = 'slipstream 700' ] || fail '/var/lib/slipstream is accessible to other users'
expect 'installed again' chroot "$root" dpkg -i "/tmp/$name.deb"

step unit
unit=/usr/lib/systemd/system/slipstream.service
for line in NoNewPrivileges=yes ProtectSystem=strict MemoryMax= LimitNOFILE= User=slipstream; do
	grep -q "^$line" "$root$unit" || fail "the unit has no $line"
done
# systemd-analyze looks for the program and its manual page on this machine, where they are not
# installed.
sed "s,^ExecStart=/usr,ExecStart=$root/usr," "$root$unit" >"$work/slipstream.service"
expect 'systemd-analyze rejects the unit' env MANPATH="$root/usr/share/man" systemd-analyze verify "$work/slipstream.service"
[ ! -s "$work/out" ] || { cat "$work/out"; fail 'systemd-analyze warns about the unit'; }
expect 'the unit is not hardened' systemd-analyze security --offline=true --threshold=15 "$work/slipstream.service"
tail -n 1 "$work/out"

step 'manual page and completion'
MANWIDTH=80 man -l "$root/usr/share/man/man1/slipstream.1.gz" 2>"$work/out" | grep -q 'slipstream db apply' || fail 'no manual page'
[ ! -s "$work/out" ] || { cat "$work/out"; fail 'man warns about the page'; }
expect 'no completion' chroot "$root" bash -c '. /usr/share/bash-completion/completions/slipstream && complete -p slipstream'

step 'start as the user, with the configuration of the package'
cat >"$work/inside" <<'INSIDE'
set -euo pipefail
root=$1
ip link set lo up
mount -t proc proc "$root/proc"
run() { exec chroot --userspec=slipstream:slipstream "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/var/lib/slipstream "$@"; }
as() { (run "$@"); }
# again COMMAND... repeats the command until it succeeds, for at most two minutes.
again() { for _ in $(seq 1200); do if "$@"; then return; fi; sleep 0.1; done; echo "failed for two minutes: $*"; return 1; }
as slipstream config check -c /etc/slipstream/slipstream.yaml --offline
run slipstream demo --keep /var/lib/slipstream --no-writer >"$root/tmp/demo" & demo=$!
again grep -q 'Ctrl-C stops' "$root/tmp/demo" 2>/dev/null
kill -TERM $demo
wait $demo
run slipstream serve -c /etc/slipstream/slipstream.yaml & serve=$!
again as slipstream probe ready -c /etc/slipstream/slipstream.yaml 2>/dev/null
curl -fsS http://127.0.0.1:9100/ready
echo
curl -fsS http://127.0.0.1:8080/depts/42 | tee "$root/tmp/document" | cut -c 1-100
grep -q '"deptno":42' "$root/tmp/document"
[ "$(stat -c %U "/proc/$serve")" != root ]
kill -TERM $serve
wait $serve
umount "$root/proc"
INSIDE
# Separate namespaces ensure that no port is in use and no process outlives the script.
unshare --net --pid --fork --mount --mount-proc bash "$work/inside" "$root" || fail 'the package does not serve'

step purge
expect 'not purged' chroot "$root" dpkg -P slipstream
for file in /usr/bin/slipstream /etc/slipstream/slipstream.yaml "$unit"; do
	[ ! -e "$root$file" ] || fail "$file is still there"
done
[ -e "$root/var/lib/slipstream/demo.db" ] || fail 'purging the package removed the user data'

step "install $name.rpm"
root=$work/red
expect 'not installed' rpm --root "$root" --nodeps --install "$PWD/dist/$name.rpm"
chroot "$root" getent passwd slipstream >/dev/null || fail 'there is no user slipstream'
expect 'the program does not start' chroot --userspec=slipstream:slipstream "$root" slipstream version
expect 'not removed' rpm --root "$root" --nodeps --erase slipstream
[ ! -e "$root/usr/bin/slipstream" ] || fail '/usr/bin/slipstream is still there'

step passed
