#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Removes what systemd/install.sh has installed: systemd/uninstall.sh [OPTION]…
#
#   --prefix DIR    where it is (default ~/.local)
#   --destdir DIR   what was put in front of every path
#
# Applications are saved, the broker is stopped, and the files go. Archives stay; the last line says where they are.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/install.sh" --uninstall "$@"
