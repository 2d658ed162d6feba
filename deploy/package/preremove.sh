#!/bin/sh
# deb: "remove" or "upgrade". rpm: 0, or 1 if it is an upgrade.
set -e
[ "$1" = remove ] || [ "$1" = 0 ] || exit 0
if [ -d /run/systemd/system ]; then
	systemctl disable --now slipstream.service
fi
