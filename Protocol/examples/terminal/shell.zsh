# SPDX-License-Identifier: Apache-2.0
#
# zsh comes back in its directory and at its place in the history: source this in ~/.zshrc. See README.md.
# What comes back is a directory and a number. Nothing that the broker says is run.
[[ -o interactive && -n ${XDG_RUNTIME_DIR-} ]] || return 0
[[ -v __restoration ]] || typeset -g __restoration=${RESTORATION_SHELL-} # `-` after the first prompt
unset RESTORATION_SHELL # a shell that is started in this one is another one
typeset -g __restoration_home= __restoration_reads=
[[ ! . -ef ~ ]] || __restoration_home=1 # what comes later in ~/.zshrc may leave it
typeset -g __restoration_keeper=${${(%):-%x}:A:h}/shell-keeper.bash
typeset -g __restoration_files=$XDG_RUNTIME_DIR/restoration-terminal/zsh.$$
zmodload zsh/system zsh/zle # without the line editor `add-zle-hook-widget` does nothing
autoload -Uz add-zsh-hook add-zle-hook-widget

__restoration_tell() { { builtin print -rN -- "${__restoration_taken-}$1" >|$__restoration_files.told } 2>/dev/null }

__restoration_keep() { # by a process beside the shell
  setopt localoptions no_bg_nice
  unset __restoration_taken # what the next one finds saved is another shell's
  command mkdir -p -m 700 -- ${__restoration_files:h}
  command rm -f -- $__restoration_files.{told,wake,answer}
  command mkfifo -m 600 -- $__restoration_files.{wake,answer}
  command bash -p $__restoration_keeper org.zsh.zsh $__restoration_files ${RESTORATION_WAIT:-2} $PWD \
    "$1" "${__restoration#-}" "$__restoration_home" </dev/null &>/dev/null &!
  typeset -g __restoration_pid=$!
}

# Only what the user has typed ends the shell for good. `exit` stays a command of the line: if a function runs it, a
# login shell leaves out hooks of the user's.
() {
  emulate -L zsh
  local name command
  for name; do
    command="__restoration_ends=\$(__restoration_wish) builtin $name"
    functions[$name]="$command \"\${@:-\$?}\""
    (( ${+aliases[$name]} )) || alias "$name=$command"
  done
  # The first one: others may show the directory.
  typeset -ga precmd_functions
  precmd_functions=(__restoration_prompt ${precmd_functions:#__restoration_prompt})
  add-zsh-hook zshexit __restoration_leave
  add-zsh-hook preexec __restoration_command
  add-zle-hook-widget line-init __restoration_line
} exit bye logout
__restoration_wish() {
  local -i code=$?
  # Not if a child of the shell leaves, or a trap of the user's.
  [[ ${sysparams[ppid]} != ${__restoration_files:e} || $ZSH_EVAL_CONTEXT == *trap* || -n ${(M)funcstack:#TRAP*} ]] ||
    __restoration_tell exit
  return code
}

__restoration_line() { __restoration_reads=1 }
__restoration_command() { __restoration_reads= }
__restoration_leave() {
  # At Ctrl-D a line was begun, and is not edited any more; a signal comes while it is, or within a widget.
  [[ ${sysparams[pid]} == ${__restoration_files:e} && -n $__restoration_reads && ! -v WIDGET && -t 0 ]] || return 0
  zle || __restoration_tell exit
}

__restoration_prompt() {
  __restoration_reads=
  local history_file= shares=${options[sharehistory]}
  (( SAVEHIST <= 0 )) || history_file=${HISTFILE-}
  [[ -z "$history_file" ]] || fc -AI 2>/dev/null
  emulate -L zsh
  # At the first prompt, when the history has been read; or it was killed.
  [[ -v __restoration_pid ]] && builtin kill -0 $__restoration_pid 2>/dev/null || __restoration_keep "$history_file"
  if [[ $__restoration != - ]]; then
    __restoration=- # also if Ctrl-C ends the wait: the keeper stores elsewhere what is told without a plus
    local there= lines=
    IFS= read -r -d '' -t ${RESTORATION_WAIT:-2} there <>$__restoration_files.answer && [[ $there == [0-9]* ]] &&
      typeset -g __restoration_taken=+
    lines=${there%% *} there=${there#* }
    if [[ -v __restoration_taken && -d $there ]]; then
      builtin cd -- $there
      [[ $shares == on || -z $history_file ]] || __restoration_rearrange $lines $history_file
    fi
  fi 2>/dev/null
  __restoration_tell $PWD
  { builtin print 1<>$__restoration_files.wake } 2>/dev/null
  if [[ -s $__restoration_files.trouble ]]; then # what was refused, told once
    builtin print -r -- "restoration: $(<$__restoration_files.trouble)" >/dev/tty
    command rm -f -- $__restoration_files.trouble
  fi
}

__restoration_rearrange() { # what other shells have added comes before what this one did last
  local file=$__restoration_files.history size=$HISTSIZE
  { command tail -n +$(( $1 + 1 )) -- $2 && command head -n $1 -- $2 } >|$file || return
  HISTSIZE=1 # forgets all but one
  HISTSIZE=$size
  fc -R $file
  HISTSIZE=$(( $#history - 1 )) # and that one
  HISTSIZE=$size
  command rm -f -- $file
}
