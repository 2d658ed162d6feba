#!/bin/sh
# deb: "configure" and the version before, if there was one. rpm: 1, or 2 if it is an upgrade.
set -e
[ "$1" = configure ] || [ "$1" = 1 ] || [ "$1" = 2 ] || exit 0
if ! getent group slipstream >/dev/null; then
	groupadd --system slipstream
fi
if ! getent passwd slipstream >/dev/null; then
	useradd --system --gid slipstream --home-dir /var/lib/slipstream --no-create-home \
		--shell /usr/sbin/nologin --comment 'Slipstream gateway' slipstream
fi
# For what runs before the first start of the service, which sees to it otherwise.
install -d -o slipstream -g slipstream -m 0700 /var/lib/slipstream
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# An upgrade goes on with the new program, if the service runs. It is never started or enabled here.
	if [ "$1" = 2 ] || [ -n "${2:-}" ]; then
		systemctl try-restart slipstream.service
	fi
fi
