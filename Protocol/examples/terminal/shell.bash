# SPDX-License-Identifier: Apache-2.0
#
# Bash comes back in its directory and at its place in the history: source this in ~/.bashrc. See README.md.
# What comes back is a directory and a number. Nothing that the broker says is run.
[[ $- == *i* && -n ${XDG_RUNTIME_DIR-} && ! -v __restoration ]] && command -v restorationctl >/dev/null || return 0
__restoration=${RESTORATION_SHELL-}
unset RESTORATION_SHELL # a shell that is started in this one is another one
PROMPT_COMMAND+=$'\n__restoration_prompt'
[[ -n $(trap -p HUP) ]] || trap '__restoration_over=1; exit 129' HUP
[[ -n $(trap -p EXIT) ]] || # not if its window has gone
  trap '[[ ! -t 0 || -n ${__restoration_over-} ]] || __restoration_tell exit' EXIT

# Runs beside the shell, so that no prompt waits: says what is saved, and stores what it is told.
__restoration_keeper() {
  local LC_ALL=C names=("$1") application=org.gnu.bash locks=$XDG_RUNTIME_DIR/restoration-shell saved=''
  trap '' HUP INT QUIT TERM TSTP PIPE && command mkdir -p -m 700 "$locks"
  # A shell that nobody has named, and that begins at home, is the one that was killed last; tmux names its own.
  [[ -n $1${TMUX_PANE-} || $PWD != "$HOME" ]] || mapfile -t names < <(
    restorationctl --timeout 1 -j tree "$application" |
      jq -r '.objects | sort_by(.modified) | reverse[].path[0] | select(test("^[0-9]"))')
  for name in "${names[@]}" "${TMUX_PANE:+tmux-}$(command date +%Y%m%dT%H%M%S)-$BASHPID"; do
    [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9-]*$ ]] && exec 8>|"$locks/$name" && flock -w "0${1:+.3}" 8 || continue
    saved=$(restorationctl --timeout 1 get "$application" "$name" 8>&-)
    (($? == 0 || $? == 4)) && break # who does not know what is saved must not replace it
  done
  [[ $saved =~ \"directory\":\"([^\"]*)\",\"history\":([0-9]{1,9}) ]]
  printf '%s %s\n' "${BASH_REMATCH[2]:-0}" "${BASH_REMATCH[1]-}"
  [[ -z ${TMUX_PANE-} ]] || tmux set-option -p -t "$TMUX_PANE" @restoration_shell "$name" 8>&-
  while IFS= read -r -d '' directory && IFS= read -r -d '' file; do
    while read -t 0 && IFS= read -r -d '' next && IFS= read -r -d '' file; do directory=$next; done # only the newest
    [[ $directory == /* ]] || exec restorationctl --timeout 5 rm "$application" "$name" 8>&-
    text=''
    for ((i = 0; i < ${#directory}; i++)); do # any bytes, as in a URL
      next=${directory:i:1}
      printf -v byte %d "'$next"
      [[ $next == [A-Za-z0-9/._-] ]] && text+=$next || printf -v text '%s%%%02X' "$text" $((byte & 255))
    done
    printf -v text '{"directory":"%s","history":%d}' "$text" "$(command wc -l <"$file")"
    [[ $text == "$saved" ]] || restorationctl --timeout 5 put "$application" "$name" "$text" 8>&- && saved=$text
  done
}

__restoration_tell() { # a keeper that has gone must not take the shell along
  local before
  before=$(trap -p PIPE)
  trap '' PIPE && { printf '%s\0' "$1" "${HISTFILE-}" >&"${RESTORATION[1]-}"; } 2>/dev/null
  trap - PIPE
  eval "$before" # what the user has set
}

__restoration_prompt() {
  local status=$? lines directory file=$XDG_RUNTIME_DIR/restoration-shell/$$
  if [[ $__restoration != - ]]; then # the first one: now the history has been read
    { coproc RESTORATION { __restoration_keeper "$__restoration"; }; disown $! && __restoration=-; } 2>/dev/null
    if ! IFS=' ' read -r -t 2 -u "${RESTORATION[0]}" lines directory; then
      eval "exec ${RESTORATION[1]-8}>&-" && unset RESTORATION # who does not know what is saved must not replace it
    elif [[ $directory == /* ]]; then
      printf -v directory %b "${directory//%/\\x}"
      builtin cd -- "$directory" # and what other shells have added since comes before what this one did last
      { command tail -n "+$((lines + 1))" -- "$HISTFILE" && command head -n "$lines" -- "$HISTFILE"; } >|"$file" &&
        history -c && history -r "$file" && command rm -- "$file"
    fi 2>/dev/null
  fi
  history -a
  __restoration_tell "$PWD"
  return $status
}
