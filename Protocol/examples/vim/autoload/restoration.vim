" SPDX-License-Identifier: Apache-2.0
" The editor's session with the broker: what is saved, when, and what happens at the end.

let s:objects = {'Editor': ['Editor'], 'Editor/Buffers': ['Editor', 'Buffers']}
" The broker's limit of a state (stateBytesMax), less a margin.
let s:stateBytes = 250000
" Milliseconds: from a change to its report; between attempts to connect; for the goodbye.
let s:quiet = 400
let s:retryFirst = 250
let s:retryLast = 10000
let s:goodbye = 300

" idle, connecting, restoring, kept, over
let s:phase = 'idle'
let s:retry = s:retryFirst
let s:channel = v:null
let s:token = ''
let s:application = ''
let s:instance = ''
" By path: the text of the state that the broker has, and whether it was told that there is a newer one.
let s:known = {}
let s:asked = {}
let s:timer = 0
let s:told = 0
" What the user has last asked for with a command, until Vim waits for the next one.
let s:command = ''

function! s:Option(name, default) abort
  return get(get(g:, 'restoration', {}), a:name, a:default)
endfunction

function! s:Socket() abort
  let path = s:Option('socket', $RESTORATIOND_SOCKET)
  if path !=# '' | return path | endif
  return $XDG_RUNTIME_DIR ==# '' ? '' : $XDG_RUNTIME_DIR .. '/restorationd/broker.sock'
endfunction

function! s:Tell(text) abort
  if s:told | return | endif
  let s:told = 1
  echohl WarningMsg
  " A longer message would ask for a key.
  echomsg strpart('restoration: ' .. a:text, 0, &columns - 15)
  echohl None
endfunction

function! s:Announce(pattern) abort
  if !exists('#User#' .. a:pattern) | return | endif
  try
    execute 'doautocmd <nomodeline> User' a:pattern
  catch
    " Autocommands of others may fail, and must not stop us.
    call s:Tell(v:exception)
  endtry
endfunction

" MARK: The connection

" Requests have ids and callbacks of our own: the broker's requests have a number space of their own, and Vim would take
" one of them for the answer to a request with the same number.
let s:lastID = 0
let s:waiting = {}

function! s:IsOpen() abort
  return s:channel isnot v:null && ch_status(s:channel) ==# 'open'
endfunction

function! s:Send(message) abort
  if s:IsOpen() | call ch_sendexpr(s:channel, extend({'jsonrpc': '2.0'}, a:message)) | endif
endfunction

" Calls a method; Callback(error, result), the error is empty on success.
function! s:Request(method, params, Callback = {error, result -> 0}) abort
  let s:lastID += 1
  let s:waiting[s:lastID] = a:Callback
  call s:Send({'id': s:lastID, 'method': a:method, 'params': a:params})
endfunction

function! s:Received(channel, message) abort
  if a:channel isnot s:channel || type(a:message) != v:t_dict | return | endif
  try
    if has_key(a:message, 'method')
      call s:Answer(a:message)
    elseif has_key(s:waiting, get(a:message, 'id', v:null))
      call call(remove(s:waiting, a:message.id), [get(a:message, 'error', {}), get(a:message, 'result', {})])
    endif
  catch
    call s:Tell(v:exception)
  endtry
endfunction

function! s:Closed(channel) abort
  if a:channel is s:channel | call s:Again() | endif
endfunction

function! s:Again() abort
  if s:phase ==# 'over' | return | endif
  call timer_start(s:retry, {-> s:Connect()})
  let s:retry = min([s:retry * 2, s:retryLast])
endfunction

function! s:Connect() abort
  let path = s:Socket()
  if path ==# '' || s:phase ==# 'over' | return | endif
  let s:waiting = {}
  let s:channel = v:null
  try
    let s:channel = ch_open('unix:' .. path,
      \ {'mode': 'lsp', 'callback': function('s:Received'), 'close_cb': function('s:Closed')})
    call s:Initialize()
  catch /^Vim\%((\a\+)\)\=:E902:/
    " No broker listens.
    call s:Again()
  catch
    call s:GiveUp({'message': v:exception})
  endtry
endfunction

" MARK: Changes

function! s:States() abort
  return {'Editor': restoration#layout#Windows(), 'Editor/Buffers': restoration#layout#Buffers(s:stateBytes)}
endfunction

function! s:TellChanges(timer) abort
  let s:timer = 0
  if s:phase !=# 'kept' || !s:IsOpen() | return | endif
  try
    for [path, state] in items(s:States())
      if get(s:asked, path) || get(s:known, path, '') ==# json_encode(state) | continue | endif
      let s:asked[path] = 1
      call s:Send({'method': 'invalidateRestorableState', 'params': {'object': s:objects[path]}})
    endfor
  catch
    call s:Tell(v:exception)
  endtry
endfunction

" Something may have changed. Checked once within s:quiet milliseconds.
function! s:Changed() abort
  if !s:timer | let s:timer = timer_start(s:quiet, function('s:TellChanges')) | endif
endfunction

function! s:Watch() abort
  augroup RestorationWatch
    autocmd!
    autocmd CursorMoved,CursorMovedI,BufAdd,BufDelete,BufEnter,BufFilePost,BufWinEnter,BufWritePost,TextChanged,
      \TextChangedI,WinEnter,WinNew,WinClosed,WinScrolled,VimResized,TabEnter,TabClosed,DirChanged,OptionSet,
      \CursorHold * call s:Changed()
  augroup END
endfunction

" MARK: The broker's calls

function! s:Answer(request) abort
  if a:request.method !=# 'encodeRestorableStateWithCoder'
    let fault = {'code': -32601, 'message': 'not served: ' .. a:request.method}
    if has_key(a:request, 'id') | call s:Send({'id': a:request.id, 'error': fault}) | endif
    return
  endif
  let answers = []
  let states = s:States()
  for object in a:request.params.objects
    let path = join(object.path, '/')
    let s:known[path] = json_encode(states[path])
    let s:asked[path] = 0
    call add(answers, {'object': object.object, 'state': states[path]})
  endfor
  call s:Send({'id': a:request.id, 'result': {'states': answers}})
endfunction

" MARK: The beginning

function! s:Initialize() abort
  if s:phase !=# 'kept' | let s:phase = 'connecting' | endif
  let release = v:versionlong / 1000000 .. '.' .. v:versionlong / 10000 % 100 .. '.' .. v:versionlong % 10000
  let params = {'process': 'vim', 'bundleVersion': release, 'serves': ['encodeRestorableStateWithCoder']}
  if s:token !=# '' | let params.session = s:token | endif
  if s:application !=# ''
    let params.application = s:application
  else
    let params.application = s:Option('application', 'org.vim.Vim')
    let params.instance = s:instance ==# '' ? 'auto' : s:instance
  endif
  call s:Request('initialize', params, function('s:Initialized'))
endfunction

function! s:Initialized(error, result) abort
  if !empty(a:error) | return s:GiveUp(a:error) | endif
  let isResumed = s:token ==# a:result.session
  let s:token = a:result.session
  let s:application = a:result.application
  let s:retry = s:retryFirst
  let s:known = {}
  let s:asked = {}
  if isResumed && s:phase ==# 'kept'
    call s:Changed()
  else
    call s:Register()
  endif
endfunction

function! s:GiveUp(error) abort
  let s:phase = 'over'
  call s:Tell(a:error.message)
endfunction

function! s:Register() abort
  let answers = {'failure': {}, 'channel': s:channel}
  call s:Request('registerObjectForStateRestoration',
    \ {'restorationIdentifier': 'Editor', 'kind': 'viewController', 'objectClass': 'VimEditor'},
    \ function('s:Registered', [answers, 'editor']))
  call s:Request('registerObjectForStateRestoration',
    \ {'restorationIdentifier': 'Buffers', 'restorationParent': s:objects['Editor'], 'objectClass': 'VimBuffers'},
    \ function('s:Registered', [answers, 'list']))
  call s:Request('decodeRestorableState', {'object': s:objects['Editor']},
    \ function('s:Registered', [answers, 'windows']))
  call s:Request('decodeRestorableState', {'object': s:objects['Editor/Buffers']},
    \ function('s:Registered', [answers, 'buffers']))
endfunction

function! s:Registered(answers, name, error, result) abort
  let a:answers[a:name] = a:result
  if empty(a:answers.failure) | let a:answers.failure = a:error | endif
  " Failure, channel, and four answers in any order.
  if len(a:answers) < 6 | return | endif
  if !empty(a:answers.failure)
    " Another editor has taken this instance over meanwhile.
    let isTaken = get(get(a:answers.failure, 'data', {}), 'kind', '') ==# 'duplicatePath'
    return isTaken ? s:Leave() : s:GiveUp(a:answers.failure)
  endif
  if a:answers.windows.status ==# 'available' && a:answers.buffers.status ==# 'available' && s:phase ==# 'connecting'
    let s:phase = 'restoring'
    call s:RestoreWhenQuiet(a:answers)
  else
    call s:Request('completeStateRestoration', {})
    call s:Kept()
  endif
endfunction

" Leaves this instance to the other editor, and continues in an instance of its own.
function! s:Leave() abort
  let s:token = ''
  let s:application = ''
  let s:instance = s:OwnInstance()
  call s:Request('goodbye', {'reason': 'restart'}, {error, result -> s:Initialize()})
endfunction

function! s:OwnInstance() abort
  return strftime('%Y%m%dT%H%M%S-') .. getpid()
endfunction

" Restores the layout when the user is not busy.
function! s:RestoreWhenQuiet(answers) abort
  if a:answers.channel isnot s:channel || !s:IsOpen() | return | endif
  if !restoration#layout#IsPristine() | return s:Leave() | endif
  if mode() !=# 'n' || state('moaxw') !=# '' || getcmdwintype() !=# ''
    call timer_start(50, {-> s:RestoreWhenQuiet(a:answers)})
    return
  endif
  let fault = ''
  let unsaved = []
  try
    let unsaved = restoration#layout#Restore(a:answers.windows.state, a:answers.buffers.state)
  catch
    let fault = v:exception
  endtry
  call s:Request('completeStateRestoration', {})
  if fault !=# ''
    call s:Tell(fault)
  elseif !empty(unsaved)
    call s:Tell(len(unsaved) .. ' swap file(s) with unsaved changes; see :help recovery')
  endif
  redraw
  call s:Announce('RestorationRestored')
  call s:Kept()
endfunction

function! s:Kept() abort
  let s:phase = 'kept'
  call s:Watch()
  call s:Changed()
  call s:Announce('RestorationReady')
endfunction

" MARK: The end

" Whether the user quits. Otherwise a signal ends Vim, or its terminal is gone: then the status is 1, and v:dying may be
" 0, as it is if Vim finds the end of its input before the signal comes. :cquit has that status as well, and a session
" manager (+xsmp) ends Vim with 0, but not while it runs a command.
function! s:IsUsersWord() abort
  if v:dying | return v:false | endif
  if v:exiting == 0 | return s:command !=# '' || !has('xsmp') | endif
  return s:command =~# '\v^[: ]*\d*cq%[uit]!?\s*$'
endfunction

function! s:Goodbye() abort
  let phase = s:phase
  let s:phase = 'over'
  if !s:IsOpen() || s:token ==# '' | return | endif
  let reason = phase !=# 'kept' ? 'restart' : s:IsUsersWord() ? s:Option('on_quit', 'userQuit') : 'logout'
  if phase ==# 'kept' && reason !=# 'userQuit'
    for [path, state] in items(s:States())
      call s:Send({'method': 'encodeRestorableState', 'params': {'object': s:objects[path], 'state': state}})
    endfor
  endif
  let s:isDone = 0
  call s:Request('goodbye', {'reason': reason}, {error, result -> execute('let s:isDone = 1')})
  let begin = reltime()
  while !s:isDone && s:IsOpen() && reltimefloat(reltime(begin)) * 1000 < s:goodbye
    sleep 5m
  endwhile
endfunction

" MARK: Commands

" Begins to save the layout; restores an earlier one if nothing has been opened yet.
function! restoration#Start() abort
  if s:phase !=# 'idle' | return | endif
  let s:phase = 'connecting'
  if !restoration#layout#IsPristine() | let s:instance = s:OwnInstance() | endif
  augroup RestorationEnd
    autocmd!
    autocmd VimLeavePre * call s:LeavePre()
    autocmd CmdlineLeave : let s:command = getcmdline()
    autocmd ExitPre * let s:command = 'quit'
    autocmd SafeState * let s:command = ''
  augroup END
  call s:Connect()
endfunction

function! s:LeavePre() abort
  try
    call s:Goodbye()
  catch
  endtry
endfunction

function! restoration#Status() abort
  if s:phase ==# 'idle' | return 'Not kept: not started empty on a screen; :RestorationStart begins.' | endif
  if s:phase ==# 'over' | return 'Not kept: see :messages.' | endif
  if !s:IsOpen() || s:application ==# '' | return 'Not kept: no broker at ' .. s:Socket() | endif
  return 'Kept as ' .. s:application .. '.'
endfunction
