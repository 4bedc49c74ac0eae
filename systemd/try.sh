#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Demonstrates restorationd: systemd/try.sh [--from DIR]
#
#   --from DIR   take restorationd and restorationctl from DIR; otherwise from the search path, if they are installed, and
#                otherwise they are built, which takes minutes
#
# Five processes in three languages form one editor of this repository's files. They push state, are killed with the
# broker and alone, restart, and every state is compared. Installs missing Debian packages (as root or through sudo), and
# changes nothing outside of the build directory and a temporary directory that it removes. The exit code is 0 if
# everything was restored.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() { printf 'try.sh: %s\n' "$*" >&2; exit 1; }

from=''
while (($#)); do
  case "$1" in
    --from) (($# > 1)) || die "$1 needs a directory"; from="$2"; shift 2 ;;
    --from=*) from="${1#*=}"; shift ;;
    -h | --help) sed -n '4,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "there is no option $1; see --help" ;;
  esac
done

progress() { # one line of the many that a build writes
  local line
  while IFS= read -r line; do
    if [[ -t 1 && $line =~ ^\[[0-9]+/[0-9]+\] ]]; then printf '\r   %s ' "${BASH_REMATCH[0]}"; fi
  done
}

if [[ -z $from ]] && installed="$(command -v restorationd)" && command -v restorationctl >/dev/null; then
  from="$(dirname "$installed")"
fi
if [[ -n $from ]]; then
  Tests/packages.sh python3 perl
  for program in restorationd restorationctl; do [[ -x $from/$program ]] || die "$from has no program $program"; done
  printf '== Taking the programs in %s\n' "$from"
else
  Tests/packages.sh swift libjansson-dev libsqlite3-dev libsystemd-dev pkg-config python3 perl
  mkdir -p .build
  log=.build/try.log place=.build/try.place
  printf '== Building the programs (release), which takes minutes the first time; the log is %s\n' "$log"
  { systemd/build.sh restorationd restorationctl restoration-sample 2>&1 >&3 | tee "$log" | progress; } 3>"$place" ||
    die "the programs were not built: $(grep -m 3 'error:' "$log" || tail -n 3 "$log")"
  from="$(<"$place")"
fi

printf '\n'
exec python3 -B systemd/demonstration "$from"
