" SPDX-License-Identifier: Apache-2.0
" Channels that speak JSON-RPC with Content-Length came with Vim 9.0.
if exists('g:loaded_restoration') || v:version < 900 || !has('channel') || !has('timers') | finish | endif
let g:loaded_restoration = 1

" How Vim was started, if it is not kept from its start.
let s:cause = 'before this plugin was loaded'
let s:stdin = 0
augroup Restoration
  autocmd!
  autocmd StdinReadPre * let s:stdin = 1
  autocmd VimEnter * ++nested call s:Enter()
augroup END

" Nothing is restored if the user names files, pipes text in or loads a session file, or if there is no screen.
function! s:Enter() abort
  let silent = !empty(filter(copy(v:argv[1:]), {_, word -> word =~# '^-\a*[eE]s\=$'}))
  let s:cause = argc() > 0 ? 'with files' : s:stdin ? 'with text from a pipe' :
    \ v:this_session !=# '' ? 'with a session file' : silent ? 'without a screen' : ''
  if s:cause ==# '' | call restoration#Start() | endif
endfunction

command! -bar RestorationStart call restoration#restoring#Commanded() | call restoration#Start()
command! -bar RestorationStatus echo restoration#Status(s:cause)
