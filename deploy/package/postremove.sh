#!/bin/sh
# The user stays: files may still belong to it, and the next user could get its number.
# /var/lib/slipstream stays too, because it may hold more than a cache.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
