" SPDX-License-Identifier: Apache-2.0
" Channels that speak JSON-RPC with Content-Length came with Vim 9.0.
if exists('g:loaded_restoration') || v:version < 900 || !has('channel') || !has('timers') | finish | endif
let g:loaded_restoration = 1

let s:stdin = 0
augroup Restoration
  autocmd!
  autocmd StdinReadPre * let s:stdin = 1
  autocmd VimEnter * ++nested call s:Enter()
augroup END

" Nothing is restored if the user names files, pipes text in or loads a session file, or if there is no screen.
function! s:Enter() abort
  let silent = !empty(filter(copy(v:argv[1:]), {_, word -> word =~# '^-\a*[eE]s\=$'}))
  if argc() > 0 || s:stdin || v:this_session !=# '' || silent | return | endif
  call restoration#Start()
endfunction

command! -bar RestorationStart call restoration#restoring#Commanded() | call restoration#Start()
command! -bar RestorationStatus echo restoration#Status()
