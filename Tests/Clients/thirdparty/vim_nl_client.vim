" SPDX-License-Identifier: Apache-2.0
"
" Vim's channels in mode nl: a line is a message, both directions. Run as vim --clean -es -S FILE.

source <sfile>:h/contract.vim

let s:last_id = 0
let s:answers = {}

function s:Take(channel, line) abort
  let message = json_decode(a:line)
  if !has_key(message, 'method')
    let s:answers[message.id] = message
  elseif has_key(message, 'id')
    call s:Send(#{id: message.id, result: contract#Answer(message)})
  else
    call contract#Notice(message)
  endif
endfunction

let s:broker = ch_open('unix:' .. $RESTORATIOND_SOCKET, #{mode: 'nl', callback: function('s:Take')})

function s:Send(message) abort
  call ch_sendraw(s:broker, json_encode(extend(#{jsonrpc: '2.0'}, a:message)) .. "\n")
endfunction

function s:Notify(method, params) abort
  call s:Send(#{method: a:method, params: a:params})
endfunction

" The whole answer.
function s:Call(method, params) abort
  let s:last_id += 1
  call s:Send(#{id: s:last_id, method: a:method, params: a:params})
  while !has_key(s:answers, s:last_id) && ch_status(s:broker) ==# 'open'
    sleep 1m
  endwhile
  return remove(s:answers, s:last_id)
endfunction

call contract#Run('vim-nl', function('s:Call'), function('s:Notify'))
