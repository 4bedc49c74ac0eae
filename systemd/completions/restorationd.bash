# SPDX-License-Identifier: Apache-2.0

_restorationd() {
    local options='--socket --archives --config --developer-mode --log-level --idle-exit --test-clock --version -h --help'
    case $3 in
    --socket | --config) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --archives) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    --log-level) mapfile -t COMPREPLY < <(compgen -W 'trace debug info notice warning error critical' -- "$2") ;;
    --idle-exit | --test-clock) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$2") ;;
    esac
}
complete -F _restorationd restorationd
