" SPDX-License-Identifier: Apache-2.0
"
" Vim's channels in mode lsp: Content-Length frames, both directions. Run as vim --clean -es -S FILE.

source <sfile>:h/contract.vim

function s:Take(channel, message) abort
  if has_key(a:message, 'id')
    call ch_sendexpr(a:channel, #{id: a:message.id, result: contract#Answer(a:message)})
  else
    call contract#Notice(a:message)
  endif
endfunction

let s:broker = ch_open('unix:' .. $RESTORATIOND_SOCKET, #{mode: 'lsp', callback: function('s:Take'), timeout: 20000})

function s:Notify(method, params) abort
  call ch_sendexpr(s:broker, #{method: a:method, params: a:params})
endfunction

" The whole answer.
function s:Call(method, params) abort
  return ch_evalexpr(s:broker, #{method: a:method, params: a:params})
endfunction

call contract#Run('vim-lsp', function('s:Call'), function('s:Notify'))
