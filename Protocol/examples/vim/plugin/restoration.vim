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

" Whoever names files, or pipes text in, wants just that; a session file is a layout already; without a screen there is
" nobody to restore anything for.
function! s:Enter() abort
  let silent = !empty(filter(copy(v:argv[1:]), {_, word -> word =~# '^-\a*[eE]s\=$'}))
  if argc() > 0 || s:stdin || v:this_session !=# '' || silent | return | endif
  call restoration#Start()
endfunction

command! -bar RestorationStart call restoration#Start()
command! -bar RestorationStatus echo restoration#Status()
