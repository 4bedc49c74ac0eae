# SPDX-License-Identifier: Apache-2.0
#
# fish comes back in its directory: source this in ~/.config/fish/config.fish. See README.md.
# What comes back is a directory. Nothing that the broker says is run.
if status is-interactive; and set -q XDG_RUNTIME_DIR
    set -q __restoration; or set -g __restoration "$RESTORATION_SHELL" # `-` after the first prompt
    set -e RESTORATION_SHELL # a shell that is started in this one is another one
    set -g __restoration_home
    test (builtin pwd -P) = (builtin realpath ~); and set __restoration_home 1 # what comes later may leave it
    set -g __restoration_keeper (string replace -r '[^/]*$' shell-keeper.bash (builtin realpath (status filename)))
    set -g __restoration_files $XDG_RUNTIME_DIR/restoration-terminal/fish.$fish_pid

    function __restoration_keep # by a process beside the shell
        set -e __restoration_taken # what the next one finds saved is another shell's
        command mkdir -p -m 700 (string replace -r '/[^/]*$' '' $__restoration_files)
        command rm -f $__restoration_files.{told,wake,answer}
        command mkfifo -m 600 $__restoration_files.{wake,answer}
        command bash -p $__restoration_keeper com.fishshell.fish $__restoration_files $argv[1] $PWD \
            "" (string replace -r '^-$' '' -- $__restoration) "$__restoration_home" </dev/null &>/dev/null &
        set -g __restoration_pid $last_pid
        disown $last_pid
    end

    function __restoration_tell
        printf '%s\0' "$__restoration_taken$argv[1]" >$__restoration_files.told
    end

    # Only what the user has typed ends the shell for good: `exit`, or Ctrl-D at an empty line.
    function exit
        set -l code $argv $status
        # Not if a trap of the user's leaves.
        status stack-trace | string match -qr 'SIG[A-Z0-9]+ \('; or set -g __restoration_wish
        builtin exit $code[1]
    end

    function __restoration_end_of_input
        if not string length -q -- (commandline)
            if jobs -q; and not set -q __restoration_warned # as fish does, once
                set -g __restoration_warned
            else
                set -g __restoration_wish
            end
        end
        commandline -f delete-or-exit
    end

    function __restoration_leave --on-event fish_exit
        set -q __restoration_wish; and __restoration_tell exit 2>/dev/null
    end

    function __restoration_prompt --on-event fish_prompt
        set -e __restoration_wish
        set -e __restoration_warned
        set -l wait $RESTORATION_WAIT 2
        # At the first prompt; or it was killed.
        set -q __restoration_pid; and test -e /proc/$__restoration_pid; or __restoration_keep $wait[1]
        if test "$__restoration" != -
            set __restoration - # also if Ctrl-C ends the wait: the keeper stores elsewhere what is told without a plus
            set -l answer (command timeout --foreground $wait[1] head -z -n 1 $__restoration_files.answer 2>/dev/null |
                string split0)
            string match -rq '(?s)^[0-9]+ (?<there>.*)$' -- "$answer"; and set -g __restoration_taken +
            test -d "$there"; and builtin cd $there
        end
        for mode in (bind -L) # not if Ctrl-D means something else
            set -l bound (bind -M $mode \cd 2>/dev/null)
            test (count $bound) = 1; and string match -q -- '*--preset*delete-or-exit' $bound
            and bind -M $mode \cd __restoration_end_of_input
        end
        __restoration_tell $PWD 2>/dev/null
        command sh -c 'echo 1<>"$0"' $__restoration_files.wake 2>/dev/null # fish would wait for a reader
        if test -s $__restoration_files.trouble # what was refused, told once
            printf 'restoration: %s\n' (command cat $__restoration_files.trouble) >/dev/tty
            command rm -f $__restoration_files.trouble
        end
    end
end
