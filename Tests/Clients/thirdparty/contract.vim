" SPDX-License-Identifier: Apache-2.0
"
" Shared by the Vim programs of this directory: the states, the steps, and the reports. See README.md.

set encoding=utf-8
scriptencoding utf-8

let s:path = ['Notes']
let s:draft = #{draft: v:true}
let s:state = #{
      \ text: "Grüße, 世界 🗒 \"\\\u2028",
      \ nested: {'list': [1, [v:true, v:null], #{a: #{b: []}}], '': {}},
      \ ratio: 0.1,
      \ big: 9007199254740993,
      \ }
let s:saved = v:false

function s:Say(line) abort
  call setline(1, a:line)
  1print
endfunction

" Reports a step, or ends Vim if the value is not the expected one.
function s:Expect(step, actual, expected) abort
  if a:actual !=# a:expected
    call s:Say(printf('not ok %s: %s instead of %s', a:step, string(a:actual), string(a:expected)))
    cquit
  endif
  call s:Say('ok ' .. a:step)
endfunction

function s:ExpectState(step, answer, state) abort
  call s:Expect(a:step, [a:answer.result.status, a:answer.result.state], ['available', a:state])
endfunction

" The result of a call of the broker.
function contract#Answer(message) abort
  let objects = a:message.params.objects
  call s:Expect('encodeRequest', [a:message.method, objects[0].path], ['encodeRestorableStateWithCoder', s:path])
  return #{states: [#{object: objects[0].object, state: extendnew(s:state, #{asked: v:true})}]}
endfunction

" Handles a notification of the broker.
function contract#Notice(message) abort
  call s:Expect('saved', [a:message.method, a:message.params.generation], ['applicationStateSaved', 1])
  let s:saved = v:true
endfunction

function contract#Run(process, Call, Notify) abort
  try
    call s:Steps(a:process, a:Call, a:Notify)
  catch
    call s:Say(printf('not ok: %s at %s', v:exception, v:throwpoint))
    cquit
  endtry
  qall!
endfunction

function s:Steps(process, Call, Notify) abort
  let serves = ['encodeRestorableStateWithCoder', 'applicationStateSaved']
  let identity = #{application: $RESTORATION_APPLICATION, process: a:process, serves: serves}
  call s:Expect('initialize', a:Call('initialize', identity).result.protocolVersion, 1)
  let object = #{restorationIdentifier: 'Notes', objectClass: 'Notes'}
  let registered = a:Call('registerObjectForStateRestoration', object).result
  call s:Expect('register', registered.path, s:path)
  call a:Notify('encodeRestorableState', #{object: s:path, state: s:draft})
  call s:ExpectState('notify', a:Call('decodeRestorableState', #{object: s:path}), s:draft)
  let stored = a:Call('encodeRestorableState', #{object: registered.object, state: s:state})
  call s:Expect('encode', stored.result.durability, 'disk')
  call s:ExpectState('decode', a:Call('decodeRestorableState', [s:path]), s:state)
  let error = a:Call('decodeRestorableState', #{object: ['Missing']}).error
  call s:Expect('error -32002 unknownObject', [error.code, error.data.kind], [-32002, 'unknownObject'])
  call s:Say('waiting')
  while !s:saved
    sleep 1m
  endwhile
  call s:Expect('goodbye', a:Call('goodbye', #{reason: 'restart'}).result, {})
endfunction
