#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Demonstrates restorationd: five processes in three languages form one editor of this repository's files. They push
# state, are killed with the broker and alone, restart, and every state is compared. Installs missing Debian packages
# (as root or through sudo), builds the programs, and changes nothing outside of the build directory and a temporary
# directory that it removes. The exit code is 0 if everything was restored.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

Tests/packages.sh swift libjansson-dev libsqlite3-dev libsystemd-dev pkg-config python3 perl

printf '== Building the programs (release)\n'
programs="$(systemd/build.sh restorationd restorationctl restoration-sample)"

printf '\n'
exec python3 -B systemd/demonstration "$programs"
