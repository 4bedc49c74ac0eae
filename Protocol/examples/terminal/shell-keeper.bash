# SPDX-License-Identifier: Apache-2.0
#
# Runs beside a shell of any kind, so that no prompt waits: says what is saved, stores what it is told. See README.md.
# Arguments: the application; how the names begin of the files by which both speak, FOLDER/KIND.PID; how many seconds to
# wait for the broker; the shell's directory; the file of its history, and its name, if any; whether it began at home.
#
# The kernel kills `cat` when the shell ends, however that is: then the input of this program is over. Until then each
# line of it says that the shell has told something.
if [[ $1 != again ]]; then
  trap '' HUP INT QUIT TERM TSTP
  exec setpriv --pdeathsig KILL cat > >(exec "$BASH" -p "$0" again "$@") <>"$2.wake"
fi
shift
application=$1 files=$2 shell=${2##*.} wait=$3 begin=$4 history=$5 names=("$6") locks=$XDG_RUNTIME_DIR/restoration-shell
# What is stored here.
valid='^\{"directory":"(/[A-Za-z0-9/._%-]*)"(,"history":([0-9]{1,9})(,"check":([0-9]{1,10}))?)?\}$'
pane='' saved='' there='' lines=0 stay='' told='' ended='' replaces='' LC_ALL=C
place=${0%/restorers/terminal/*}
PATH+=:~/.local/bin:${place%/share/restorationd}/bin # which a login shell may not have yet
trap '' PIPE && mkdir -p -m 700 "$locks"
# If the shell has not ended, the next one of these needs the files.
trap '[[ -e /proc/$shell/exe ]] || rm -f "$files" "$files".{told,seen,wake,answer,trouble}' EXIT

parent() { awk '$1 == "PPid:" { print $2 }' "/proc/$1/status"; }
place() { [[ -z $history ]] || LC_ALL=C awk -v "place=$1" -v "check=$2" -f "${0%-*}-place.awk" "$history" 8>&-; }
lock() { # a name, as long as this process lives; the one before is given up
  [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9-]{0,99}$ ]] && exec 8>"$locks/$1" && flock -w "$2" 8
}

[[ -z ${TMUX_PANE-} || $(tmux display-message -pt "$TMUX_PANE" '#{pane_pid}') != "$shell" ]] || pane=$TMUX_PANE
say() { # for `restorationctl terminal status`
  [[ ${said-none} == "$name $1" ]] || printf '%s\n' "$$" "$name" ${1:+"$1"} >|"$files"
  said="$name $1"
}
ask() { # the broker; 0 if it has done it, otherwise what went wrong is said, and a refusal is told to the user, too
  local error status
  error=$(restorationctl --timeout 10 "$@" 2>&1 >/dev/null 8>&-)
  status=$? error=${error%%$'\n'*}
  ((status)) || { say '' && return; }
  ((status != 127)) || error='restorationctl is not in PATH; install it, or add its directory in ~/.profile'
  error="this shell is not saved: ${error#restorationctl: }"
  say "$error"
  [[ $status == @(3|69|75) || $told == *"$error"* ]] || { told+=$error && printf '%s\n' "$error" >|"$files.trouble"; }
  return "$status"
}

printf -v own '%s%(%Y%m%dT%H%M%S)T-%d' "${pane:+tmux-}" -1 $$
if { read -r former && read -r name; } <"$files" && grep -qs "${0##*/}" "/proc/$former/cmdline" &&
  [[ $(parent "$(parent "$former")") == "$shell" ]]; then
  kill -KILL "$former" "$(parent "$former")" # by `exec` the shell has become another one of its kind
  names=("$name") replaces=1
elif [[ -z $6$pane && -n $7 ]]; then
  # A shell without a name that begins at home comes back as the one that was killed last; tmux names its own.
  mapfile -t names < <(restorationctl --timeout "$wait" -j tree "$application" |
    jq -r '.objects | sort_by(.modified) | reverse[].path[0] | select(test("^[0-9]"))')
fi
for name in "${names[@]}" "$own"; do
  [[ -n $6$replaces ]] && patience=$wait || patience=0
  lock "$name" "$patience" || continue
  saved='' && [[ $name != "$own" ]] || break
  saved=$(restorationctl --timeout "$wait" get "$application" "$name" 8>&-)
  (($? == 4)) || [[ $saved =~ $valid ]] && break # who does not know what is saved must not replace it
done
if [[ $saved =~ $valid ]]; then
  printf -v there %b "${BASH_REMATCH[1]//%/\\x}"
  lines=$(place "${BASH_REMATCH[3]}" "${BASH_REMATCH[5]}")
  [[ -x $there/. ]] || stay=$begin # nothing takes the place of a directory that is missing, until the shell leaves
  [[ -z $replaces ]] || there=''   # it is there already
fi
say ''
# The shell may have ended before the kernel was asked to tell that; then `cat` ends by what it cannot write.
[[ $(parent "$PPID") == "$shell" ]] || { exec </dev/null && echo 1<>"$files.wake"; }
cd / && exec 7<>"$files.answer" && printf '%d %s\0' "${lines% *}" "$there" >&7

due=$saved
store() { # what the shell has told last
  local directory text='' i next byte
  [[ -n $ended ]] || : >|"$files.seen"
  IFS= read -r -d '' directory <"$files.told" || return # nothing yet, or a part of it
  [[ ! -e $files.answer ]] || rm "$files.answer"
  if [[ $directory != +* && $name != "$own" ]]; then # the shell did not wait: what is saved is another one's
    name=$own saved='' stay='' && lock "$own" 0
  fi
  directory=${directory#+}
  if [[ $directory == exit ]]; then
    [[ -n $ended ]] || return      # its jobs may keep the shell from leaving
    for ((i = 0; i < 30; i++)); do # a broker that is being started again is awaited
      ask rm "$application" "$name"
      (($? == 69 || $? == 75)) && sleep 2 8>&- || exit
    done
    exit
  fi
  [[ -z $pane ]] || tmux if-shell -Ft "$pane" "#{==:#{pane_pid},$shell}" \
    "set-option -pt $pane @restoration_shell $name" 8>&- # not in the next server, whose panes have the same numbers
  pane=''
  [[ $directory != "$stay" ]] || return
  stay=''
  for ((i = 0; i < ${#directory}; i++)); do # any bytes, as in a URL
    next=${directory:i:1}
    printf -v byte %d "'$next"
    [[ $next == [A-Za-z0-9/._-] ]] && text+=$next || printf -v text '%s%%%02X' "$text" $((byte & 255))
  done
  # What others have added to the history since the shell told that is not its own.
  if [[ -z $ended || $files.told -nt $files.seen ]]; then
    lines=$(place)
    printf -v due '{"directory":"%s"%s}' "$text" "${lines:+,\"history\":${lines% *},\"check\":${lines#* }}"
  fi
  until [[ $due == "$saved" ]] || ask put "$application" "$name" "$due"; do
    # As long as it lives, and tells nothing new. Other troubles wait for the next prompt.
    (($? == 69 || $? == 75)) && [[ -z $ended ]] && sleep 2 8>&- && ! read -t 0 || return
  done
  saved=$due
}

store # something may have been told meanwhile
while read -r; do
  while read -t 0 && read -r; do :; done
  store
done
ended=1
store
