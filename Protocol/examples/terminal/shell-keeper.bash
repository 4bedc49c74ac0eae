# SPDX-License-Identifier: Apache-2.0
#
# Runs beside a shell, so that no prompt waits: says what is saved, and stores what it is told. See README.md.
# Arguments: how long to wait for the broker, in seconds; the shell's directory, file of its history, and name, if any;
# and whether it began at home.
wait=$1 begin=$2 history=$3 names=("$4") application=org.gnu.bash locks=$XDG_RUNTIME_DIR/restoration-shell
report=$XDG_RUNTIME_DIR/restoration-terminal/bash.$PPID PATH+=:~/.local/bin # which a login shell may not have yet
valid='^\{"directory":"(/[A-Za-z0-9/._%-]*)","history":([0-9]{1,9})(,"check":([0-9]{1,10}))?\}$' # only what is stored here
pane='' saved='' there='' lines=0 stay='' told='' LC_ALL=C
trap '' HUP INT QUIT TERM TSTP PIPE && mkdir -p -m 700 "$locks" "${report%/*}"
trap 'rm -f "$report"' EXIT

place() { LC_ALL=C awk -v "place=$1" -v "check=$2" -f "${0%-*}-place.awk" "$history" 8>&-; }
lock() { # a name, as long as this process lives; the one before is given up
  [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9-]{0,99}$ ]] && exec 8>"$locks/$1" && flock -w "$2" 8
}

[[ -z ${TMUX_PANE-} || $(tmux display-message -pt "$TMUX_PANE" '#{pane_pid}') != "$PPID" ]] || pane=$TMUX_PANE
say() { # for `restorationctl terminal status`
  [[ ${said-none} == "$name $1" ]] || printf '%s\n' "$$" "$name" ${1:+"$1"} >|"$report"
  said="$name $1"
}
ask() { # the broker; 0 if it has done it, otherwise what went wrong is said, and a refusal is told to the user, too
  local error status
  error=$(restorationctl --timeout 10 "$@" 2>&1 >/dev/null 8>&-)
  status=$? error=${error%%$'\n'*}
  ((status)) || { say '' && return; }
  ((status != 127)) || error='restorationctl is neither in PATH nor in ~/.local/bin'
  error="this shell is not saved: ${error#restorationctl: }"
  say "$error"
  [[ $status == @(3|69|75) || $told == *"$error"* ]] || { told+=$error && printf '%s\0' "$error"; }
  return "$status"
}

printf -v own '%s%(%Y%m%dT%H%M%S)T-%d' "${pane:+tmux-}" -1 $$
# A shell without a name that begins at home comes back as the one that was killed last; tmux names its own.
[[ -n $4$pane || -z $5 ]] || mapfile -t names < <(
  restorationctl --timeout "$wait" -j tree "$application" |
    jq -r '.objects | sort_by(.modified) | reverse[].path[0] | select(test("^[0-9]"))')
for name in "${names[@]}" "$own"; do
  lock "$name" "0${4:+$wait}" || continue
  saved='' && [[ $name != "$own" ]] || break
  saved=$(restorationctl --timeout "$wait" get "$application" "$name" 8>&-)
  (($? == 4)) || [[ $saved =~ $valid ]] && break # who does not know what is saved must not replace it
done
if [[ $saved =~ $valid ]]; then
  printf -v there %b "${BASH_REMATCH[1]//%/\\x}"
  lines=$(place "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}")
  [[ -x $there/. ]] || stay=$begin # nothing takes the place of a directory that is missing, until the shell leaves
fi
say ''
cd / && printf '%d %s\0' "${lines% *}" "$there"

while IFS= read -r -d '' directory; do
  while read -t 0 && IFS= read -r -d '' next; do directory=$next; done # only the newest
  if [[ $directory != +* && $name != "$own" ]]; then # the shell did not wait: what is saved is another one's
    name=$own saved='' stay='' && lock "$own" 0
  fi
  directory=${directory#+}
  if [[ $directory == exit ]]; then # a broker that is being started again is awaited
    for ((i = 0; i < 30; i++)); do
      ask rm "$application" "$name"
      (($? == 69 || $? == 75)) && sleep 2 8>&- || exit
    done
  fi
  [[ -z $pane ]] || tmux if-shell -Ft "$pane" "#{==:#{pane_pid},$PPID}" \
    "set-option -pt $pane @restoration_shell $name" 8>&- # not in the next server, whose panes have the same numbers
  pane=''
  [[ $directory != "$stay" ]] || continue
  stay='' text=''
  for ((i = 0; i < ${#directory}; i++)); do # any bytes, as in a URL
    next=${directory:i:1}
    printf -v byte %d "'$next"
    [[ $next == [A-Za-z0-9/._-] ]] && text+=$next || printf -v text '%s%%%02X' "$text" $((byte & 255))
  done
  printf -v text '{"directory":"%s","history":%d,"check":%d}' "$text" $(place)
  until [[ $text == "$saved" ]] || ask put "$application" "$name" "$text"; do
    (($? == 69 || $? == 75)) && sleep 2 8>&- && ! read -t 0 || continue 2 # others wait for the next prompt
  done
  saved=$text
done
