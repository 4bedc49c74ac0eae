#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command with an X server of its own: screen.sh COMMAND…
set -eu
number=$(mktemp)
trap 'kill "$server" 2>/dev/null || true; rm -f "$number"' EXIT
# The pipe ends the wait: Xvfb writes the number of its display when it can be used.
pipe="$number.pipe"
mkfifo "$pipe"
Xvfb -displayfd 3 -nolisten tcp -screen 0 640x480x24 3>"$pipe" 2>/dev/null &
server=$!
read -r display <"$pipe"
rm "$pipe"
DISPLAY=":$display" "$@"
