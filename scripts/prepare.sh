#!/usr/bin/env bash
# Installs missing programs that the tests start. It installs them only as root on Debian or Ubuntu;
# otherwise it lists them and fails, because a test that is skipped because of a missing server
# looks like a pass.
set -euo pipefail

# One line per program: binary | Debian package | purpose. Two are libraries.
programs='
python3      | python3          | the second writer of the freshness tests
sqlite3      | sqlite3          | SQLite files written by another implementation
redis-server | redis-server     | internal/testkit: StartRedis
tarantool    | tarantool        | internal/testkit: StartTarantool
postgres     | postgresql       | internal/testkit: StartPostgres
pgbouncer    | pgbouncer        | internal/testkit: StartPgBouncer
curl         | curl             | a client that the gateway is tested with
node         | nodejs           | another one
javac        | default-jdk-headless | and another one; java alone runs no source
chromium     | chromium         | the dashboard, looked at with a real browser
nginx        | nginx-light      | a proxy before the gateway
haproxy      | haproxy          | another one
ab           | apache2-utils    | load on the gateway in HTTP/1.0
wrk          | wrk              | load on it in HTTP/1.1
redis-cli    | redis-tools      | a client of the Redis frontend, with redis-benchmark
redis-py     | python3-redis    | another one
node-redis   | node-redis       | and another one
'

# In Debian, the programs of PostgreSQL are not in PATH, those of PgBouncer, nginx and HAProxy are
# only in that of root, and the minimal Python lacks the sqlite3 module.
present() {
	if [ "$1" = python3 ]; then
		python3 -c 'import sqlite3' 2>/dev/null
		return
	fi
	if [ "$1" = redis-py ]; then # not in a folder that contains one named redis
		(cd / && { python3 -c 'import redis; redis.Redis' || /usr/bin/python3 -c 'import redis; redis.Redis'; }) 2>/dev/null
		return
	fi
	if [ "$1" = node-redis ]; then
		NODE_PATH=/usr/share/nodejs node -e 'require("redis")' 2>/dev/null
		return
	fi
	if [ "$1" = chromium ]; then # the name differs between systems
		command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
		return
	fi
	command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null
}

packages=()
missing=""
while IFS='|' read -r binary package reason; do
	binary=${binary// /} package=${package// /}
	if [ -n "$binary" ] && ! present "$binary"; then
		packages+=("$package")
		missing+="  $binary (Debian package $package), for$reason"$'\n'
	fi
done <<<"$programs"

# These are not packages of this system. They come last, because they need some of the packages.
prepare_others() {
	command -v redis-server-8 >/dev/null || "$(dirname "$0")/redis8.sh"
	# In the current folder, Python could import another folder named tarantool.
	(cd / && python-tarantool -c 'import tarantool; tarantool.Connection' 2>/dev/null) || "$(dirname "$0")/python-tarantool.sh"
}

if [ ${#packages[@]} -eq 0 ]; then
	prepare_others
	exit 0
fi
printf 'prepare: missing here:\n%s' "$missing"
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo 'prepare: install them, or run as root on Debian or Ubuntu' >&2
	exit 1
fi
echo "prepare: installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
# The tests start their own servers. Runlevel 1 tells invoke-rc.d not to start the services of the
# packages.
export RUNLEVEL=1
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
for p in "${packages[@]}"; do
	echo "prepare: installed $p"
done
prepare_others
