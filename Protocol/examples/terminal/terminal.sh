#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Opens a window of a terminal that comes back, with its shell, in this directory: see README.md.
id=terminal-$(date +%Y%m%dT%H%M%S)-$$
# Some terminals end as their program did, and a shell as its last command: without this, it would not be ended.
script='"$0"; exit 0'
PATH=$PATH:$HOME/.local/bin # which a desktop may not have
set -f # no words from names of files
# shellcheck disable=SC2086 # words of a command
exec restorationctl run --id "$id" -- ${RESTORATION_TERMINAL:-${TERMINAL:-x-terminal-emulator} -e} \
  env "RESTORATION_SHELL=$id" sh -c "$script" "${SHELL:-bash}"
