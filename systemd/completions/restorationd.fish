# SPDX-License-Identifier: Apache-2.0

complete -c restorationd -f
complete -c restorationd -l socket -d 'The Unix socket to listen on.' -rF
complete -c restorationd -l archives -d 'The directory to keep archives in.' -xa '(__fish_complete_directories)'
complete -c restorationd -l config -d 'The configuration file to read instead of the usual ones.' -rF
complete -c restorationd -l developer-mode -d 'Never quarantine or discard anything.'
complete -c restorationd -l log-level -d 'What to log.' -xa 'trace debug info notice warning error critical'
complete -c restorationd -l idle-exit -d 'End after this many idle seconds; only with a socket unit.' -x
complete -c restorationd -l test-clock -d 'For tests: start the clock this far ahead; descriptor 0 moves it further.' -x
complete -c restorationd -l version -d 'Show the version.'
complete -c restorationd -s h -l help -d 'Show help information.'
