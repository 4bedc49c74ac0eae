#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A note that outlives its process: note.sh IDENTIFIER [PARENT_COMPONENT ...]
#
# Every line on standard input becomes the note. However the program ends, the next one with the same identifier has the
# note again. See ../README.md for the broker's part. Needs curl and jq.
#
# Each call is an HTTP request with a connection of its own, named as this session's by its token. Over such a
# connection the broker cannot call: its calls are fetched by nextRequest, which waits until there is one.
set -uo pipefail

language=bash
socket=${RESTORATIOND_SOCKET:-${XDG_RUNTIME_DIR:-}/restorationd/broker.sock}
application=${RESTORATION_APPLICATION:-org.example.notes}
session=''
unset note # nothing yet

# fail STATUS LINE ...
fail() {
  printf '%s\n' "${@:2}" >&2
  exit "$1"
}

# Calls METHOD with the parameters on standard input, and prints the result.
call() {
  local answer
  answer=$(
    jq -c --arg method "$1" --arg application "$application" --arg session "$session" '
      {jsonrpc: "2.0", id: 1, $method, params: (. + {$application} + if $session == "" then {} else {$session} end)}' |
      curl --silent --unix-socket "$socket" --data-binary @- http://localhost/
  )
  case $? in
    0) ;;
    7) fail 69 "no broker at $socket: start restorationd, or set RESTORATIOND_SOCKET" ;;
    *) fail 69 'the broker has ended the connection' ;;
  esac
  if jq -e 'has("result")' <<<"$answer" >/dev/null 2>&1; then
    jq -c .result <<<"$answer"
  else
    fail 1 "$(jq -r '.error | .message, (.data.hint | strings | "hint: " + .)' <<<"$answer")"
  fi
}

state() {
  printf '%s' "$note" | jq -Rsc --arg language "$language" '{$language, note: .}'
}

# The broker saves. If there is no note yet, the saved state stays.
serve() {
  local request=$1
  {
    printf '%s' "$request"
    if [[ -v note ]]; then state | jq -c '{state: .}'; else echo '{"unchanged": true}'; fi
  } | jq -sc '
    .[0] as $request | .[1] as $state | {id: $request.id} +
    if $request.method == "encodeRestorableStateWithCoder"
    then {result: {states: [$request.params.objects[] | {object} + $state]}}
    else {error: {code: -32601, message: "there is no \($request.method)"}} end' |
    call answerRequest >/dev/null 2>&1 # It may be too late, which does not matter.
}

(($#)) || fail 64 'usage: note.sh IDENTIFIER [PARENT_COMPONENT ...]'

(($(printf '%s' "$socket" | wc -c) <= 107)) || fail 69 "the path of the socket has more than 107 bytes: $socket"

session=$(
  jq -nc --arg process "$language" '{$process, serves: ["encodeRestorableStateWithCoder"]}' | call initialize |
    jq -r .session
) || exit
# A process that was killed cannot be told from one that only does not ask: its session would keep the object for ten
# minutes, unless it is taken over.
object=$(
  jq -nc '$ARGS.positional as [$identifier]
    | {restorationIdentifier: $identifier, takeOver: true, awaitParentMilliseconds: 10000}
    + if $ARGS.positional[1:] == [] then {} else {restorationParent: $ARGS.positional[1:]} end' --args -- "$@" |
    call registerObjectForStateRestoration | jq -c '{object}'
) || exit
saved=$(call decodeRestorableState <<<"$object") || exit
# Another program may have saved a state of another form.
if jq -e '.state.note | strings | true' <<<"$saved" >/dev/null; then
  note=$(jq -r .state.note <<<"$saved")
  printf 'restored: %s\n' "$note"
else
  echo new
fi
call completeStateRestoration <<<'{}' >/dev/null || exit

# Both a line of standard input and a request of the broker are waited for in the background. Who has got something
# writes one word into this pipe; the rest is in a pipe of its own, which has no reader when the program has ended. If
# SIGPIPE is ignored, bash would report that.
exec {events}<> <(:) {input}<&0

wait_for_line() {
  exec {typed}< <(
    if IFS= read -r line <&"$input" || [[ -n $line ]]; then echo line >&"$events"; else echo end >&"$events"; fi
    printf '%s\n' "$line" 2>/dev/null
  )
}

wait_for_request() {
  exec {asked}< <(
    if request=$(call nextRequest <<<'{"waitMilliseconds": 30000}' 2>&1); then
      echo request >&"$events"
    else
      echo "lost $?" >&"$events"
    fi
    printf '%s\n' "$request" 2>/dev/null
  )
}

wait_for_line
wait_for_request
while read -r event status <&"$events"; do
  case $event in
    line)
      IFS= read -r line <&"$typed"
      exec {typed}<&-
      [[ $line == quit ]] && break
      note=$line
      printf 'noted: %s\n' "$note"
      call invalidateRestorableState <<<"$object" >/dev/null || exit
      wait_for_line
      ;;
    request)
      read -r request <&"$asked"
      exec {asked}<&-
      [[ $(jq -r .id? <<<"$request") == null ]] || serve "$request"
      wait_for_request
      ;;
    end) break ;;
    lost) fail "$status" "$(cat <&"$asked")" ;;
  esac
done

# After goodbye the broker would not ask for a note that was typed a moment ago.
if [[ -v note ]]; then
  { printf '%s' "$object"; state | jq -c '{state: .}'; } | jq -sc add | call encodeRestorableState >/dev/null || exit
fi
call goodbye <<<'{"reason": "restart"}' >/dev/null
