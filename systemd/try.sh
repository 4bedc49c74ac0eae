#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows what restorationd does: four processes in two languages push the state of several hundred objects, everything is
# killed, everything comes back. Installs the Debian packages that are missing (as root or through sudo), builds the
# programs, and changes nothing outside of the build directory and a directory in /tmp that it removes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

Tests/packages.sh libjansson-dev libsqlite3-dev pkg-config python3

printf '== Building the programs (release)\n'
for product in restorationd restorationctl restoration-sample; do
  swift build -c release --static-swift-stdlib --product "$product"
done

printf '\n'
exec python3 systemd/demonstration.py "$(swift build -c release --static-swift-stdlib --show-bin-path)"
