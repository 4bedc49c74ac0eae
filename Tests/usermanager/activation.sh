#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures socket activation beside that of dbus-daemon and dconf-service: Tests/usermanager/activation.sh [ROUNDS]
#
# Installs the Debian packages that are missing, builds an optimised broker, and runs as root a user manager of its own,
# of which nothing is left. See activation.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

((EUID == 0)) || { printf 'Only root can run a user manager of its own.\n' >&2; exit 1; }
Tests/packages.sh swift libjansson-dev libsqlite3-dev libsystemd-dev pkg-config python3 binutils \
  dbus-user-session dconf-service systemd
programs="$(systemd/build.sh restorationd)"
exec python3 -B Tests/usermanager/activation.py "$programs/restorationd" "$@"
