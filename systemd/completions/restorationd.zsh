#compdef restorationd
# SPDX-License-Identifier: Apache-2.0

_arguments \
    '--socket[The Unix socket to listen on.]:path:_files' \
    '--archives[The directory to keep archives in.]:dir:_directories' \
    '--config[The configuration file to read instead of the usual ones.]:file:_files' \
    '--developer-mode[Never quarantine or discard anything.]' \
    '--log-level[What to log.]:level:(trace debug info notice warning error critical)' \
    '--idle-exit[End after this many idle seconds; only with a socket unit.]:seconds:' \
    '--test-clock[For tests: start the clock this far ahead; descriptor 0 moves it further.]:ms:' \
    '(-)--version[Show the version.]' \
    '(-)'{-h,--help}'[Show help information.]'
