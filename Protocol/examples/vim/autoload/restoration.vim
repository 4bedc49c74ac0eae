" SPDX-License-Identifier: Apache-2.0
" The editor's session with the broker: what is saved, when, and what happens at the end.

" Bytes of states in one answer: they stay far below what a frame may have, also counted as values.
let s:answerBytes = 130000
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
" The directory that it was started in.
let s:place = ''
" The broker's limit of a state.
let s:stateBytesMax = 262144
" Paths of registered objects, and of those for which the answer is due.
let s:registered = {}
let s:registering = {}
" By path: the state that the broker has, whether it was told that there is a newer one, and why it refused one.
let [s:known, s:asked, s:refused] = [{}, {}, {}]
" Whether the broker withholds the order of tab pages or the list of buffers.
let s:isWithheld = v:false
let s:timer = 0
let s:told = {}
" What the user has last asked for with a command, until Vim waits for the next one.
let s:command = ''

function! s:Option(name, default) abort
  return get(get(g:, 'restoration', {}), a:name, a:default)
endfunction

" Where the broker listens, or is to; empty if nothing says so.
function! restoration#Socket() abort
  let path = s:Option('socket', $RESTORATIOND_SOCKET)
  if path !=# '' | return path | endif
  return $XDG_RUNTIME_DIR ==# '' ? '' : $XDG_RUNTIME_DIR .. '/restorationd/broker.sock'
endfunction

" Tells the user something once.
function! s:Tell(text) abort
  if has_key(s:told, a:text) | return | endif
  let s:told[a:text] = 1
  echohl WarningMsg
  " A longer message would ask for a key.
  echomsg printf('%.*S', &columns - 15, 'restoration: ' .. a:text)
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

" Calls methods; Callback(error, results) when all are answered: the first error, if any, and the results in order.
function! s:RequestAll(calls, Callback) abort
  let answers = {'error': {}, 'results': repeat([{}], len(a:calls)), 'left': len(a:calls)}
  for index in range(len(a:calls))
    call s:Request(a:calls[index][0], a:calls[index][1], function('s:Gather', [answers, index, a:Callback]))
  endfor
  if empty(a:calls) | call a:Callback({}, []) | endif
endfunction

function! s:Gather(answers, index, Callback, error, result) abort
  let a:answers.results[a:index] = a:result
  if empty(a:answers.error) | let a:answers.error = a:error | endif
  let a:answers.left -= 1
  if a:answers.left == 0 | call a:Callback(a:answers.error, a:answers.results) | endif
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
  let path = restoration#Socket()
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

function! s:Object(path) abort
  return split(a:path, '/')
endfunction

function! s:States(mayHaveLostScreen = 0) abort
  " Less a margin, for what is around a list.
  return restoration#layout#States(s:stateBytesMax - 256, a:mayHaveLostScreen)
endfunction

function! s:TellChanges(timer) abort
  let s:timer = 0
  if s:phase !=# 'kept' || !s:IsOpen() | return | endif
  try
    let states = s:States()
    call s:UnregisterClosed(states)
    for [path, state] in items(states)
      if !has_key(s:registered, path)
        if !has_key(s:registering, path) | call s:RegisterPage(path) | endif
      elseif !get(s:asked, path) && get(s:known, path) isnot state
        call s:Invalidate(path)
      endif
    endfor
    call s:TellUnsaved()
  catch
    call s:Tell(v:exception)
  endtry
endfunction

function! s:Invalidate(path) abort
  let s:asked[a:path] = 1
  call s:Send({'method': 'invalidateRestorableState', 'params': {'object': s:Object(a:path)}})
endfunction

" A tab page was opened: nothing that was saved under its number is its own.
function! s:RegisterPage(path) abort
  let s:registering[a:path] = 1
  call s:Request('registerObjectForStateRestoration', extend({'fresh': v:true}, s:Description(a:path)),
    \ function('s:RegisteredPage', [a:path]))
endfunction

function! s:RegisteredPage(path, error, result) abort
  unlet s:registering[a:path]
  if !empty(a:error)
    " Tried again with the next change.
    let s:refused[a:path] = 'is not saved: ' .. a:error.message
    return s:TellUnsaved()
  endif
  let s:registered[a:path] = 1
  call s:Invalidate(a:path)
  " It may have been closed meanwhile.
  call s:Changed()
endfunction

" Tab pages were closed.
function! s:UnregisterClosed(states) abort
  for path in filter(keys(s:registered), {_, path -> !has_key(a:states, path)})
    for table in [s:registered, s:known, s:asked, s:refused]
      if has_key(table, path) | unlet table[path] | endif
    endfor
    call s:Request('unregisterObject', {'object': s:Object(path)})
  endfor
endfunction

" How an object is registered.
function! s:Description(path) abort
  let [parent, name] = [s:Object(a:path)[: -2], s:Object(a:path)[-1]]
  let class = get({'Editor': 'VimEditor', 'Buffers': 'VimBuffers'}, name, 'VimTabPage')
  let description = {'restorationIdentifier': name, 'objectClass': class}
  return extend(description, empty(parent) ? {'kind': 'viewController'} : {'restorationParent': parent})
endfunction

" Something may have changed. Checked once within s:quiet milliseconds.
function! s:Changed() abort
  if !s:timer | let s:timer = timer_start(s:quiet, function('s:TellChanges')) | endif
endfunction

function! s:Marked(subject) abort
  call restoration#layout#Mark(a:subject)
  call s:Changed()
endfunction

function! s:Watch() abort
  augroup RestorationWatch
    autocmd!
    autocmd CursorMoved,CursorMovedI,CursorHold,WinEnter,WinLeave,WinNew,WinScrolled,VimResized,TabEnter *
      \ call s:Marked('window')
    autocmd WinClosed,TabClosed * call s:Marked('all')
    autocmd TextChanged,TextChangedI,BufWritePost * call s:Marked('buffer')
    autocmd BufAdd,BufDelete,BufEnter,BufFilePost,BufWinEnter,BufWinLeave,DirChanged,OptionSet * call s:Marked('list')
  augroup END
endfunction

" MARK: What is not saved

" Tells the user once that something is not saved as it is, and again after everything was.
function! s:TellUnsaved() abort
  let text = 'not all is saved: see :RestorationStatus'
  if !empty(s:refused) || !empty(restoration#layout#Notes()) | return s:Tell(text) | endif
  if has_key(s:told, text) | unlet s:told[text] | endif
endfunction

function! s:Title(path) abort
  let number = matchstr(a:path, '\d\+$')
  if number !=# '' | return 'tab page ' .. restoration#layout#Tab(str2nr(number)) | endif
  return a:path ==# 'Editor' ? 'order of tab pages' : 'list of buffers'
endfunction

" The broker has refused a state.
function! s:Refused(params) abort
  let path = type(get(a:params, 'path')) == v:t_list ? join(a:params.path, '/') : ''
  if !has_key(s:registered, path) | return | endif
  let fault = a:params.error
  " What may be stored another time is told again; at once, if this editor was only busy for too long.
  if fault.kind !=# 'limitExceeded' | let s:known[path] = v:null | endif
  if fault.kind ==# 'timedOut' | return s:Changed() | endif
  let advice = !has_key(fault, 'limit') ? '. It is tried again with the next change.' : printf(
    \ ': %s is %d, this has %d. Close some of it, or raise the limit.', fault.limit, fault.max, fault.value)
  let s:refused[path] = 'stays saved as it was, for ' .. fault.kind .. advice
  call s:TellUnsaved()
endfunction

" MARK: The broker's calls

function! s:Answer(request) abort
  if a:request.method ==# 'encodeFailed' | return s:Refused(a:request.params) | endif
  if a:request.method !=# 'encodeRestorableStateWithCoder'
    let fault = {'code': -32601, 'message': 'not served: ' .. a:request.method}
    if has_key(a:request, 'id') | call s:Send({'id': a:request.id, 'error': fault}) | endif
    return
  endif
  let [answers, bytes] = [[], 0]
  let states = s:States()
  for object in a:request.params.objects
    let path = join(object.path, '/')
    let [answer, isRefused] = [{'object': object.object}, has_key(s:refused, path)]
    call add(answers, answer)
    if !has_key(states, path) || states[path] is get(s:known, path) && !isRefused
      let answer.unchanged = v:true
    elseif bytes > s:answerBytes
      let answer.later = v:true
    else
      let answer.state = states[path]
      let bytes += len(json_encode(answer.state))
      " It stays refused until another state is stored.
      if a:request.params.round > 0 && isRefused | continue | endif
      let s:known[path] = answer.state
      if isRefused | unlet s:refused[path] | endif
    endif
    if !has_key(answer, 'later') | let s:asked[path] = 0 | endif
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
    if s:place !=# '' | let params.affinity = s:place | endif
  endif
  call s:Request('initialize', params, function('s:Initialized'))
endfunction

function! s:Initialized(error, result) abort
  if !empty(a:error) | return s:GiveUp(a:error) | endif
  let isResumed = s:token ==# a:result.session
  let s:token = a:result.session
  let s:application = a:result.application
  let s:retry = s:retryFirst
  let s:stateBytesMax = a:result.limits.stateBytesMax
  let [s:registering, s:known, s:asked, s:refused] = [{}, {}, {}, {}]
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

" Claims the objects, and fetches what is saved of them: first of the editor, then of the tab pages that it names.
function! s:Register() abort
  let paths = ['Editor', 'Editor/Buffers'] + filter(keys(s:registered), {_, path -> path =~# 'Tab-'})
  let s:registered = {}
  call s:RequestAll(s:Claims(paths) + s:Decodes(paths[:1]), function('s:Registered', [s:channel, paths]))
endfunction

function! s:Claims(paths) abort
  return map(copy(a:paths), {_, path -> ['registerObjectForStateRestoration', s:Description(path)]})
endfunction

function! s:Decodes(paths) abort
  return map(copy(a:paths), {_, path -> ['decodeRestorableState', {'object': s:Object(path)}]})
endfunction

function! s:Registered(channel, paths, error, results) abort
  if !empty(a:error) | return s:Failed(a:error) | endif
  for path in a:paths
    let s:registered[path] = 1
  endfor
  let [editor, buffers] = a:results[-2 :]
  let s:isWithheld = editor.status ==# 'quarantined' || buffers.status ==# 'quarantined'
  if s:isWithheld | call s:Tell('what was saved is withheld after crashes: see :RestorationStatus') | endif
  if s:phase !=# 'connecting' || editor.status !=# 'available'
    if editor.status ==# 'unreadable' | call s:Tell('saved windows are unreadable') | endif
    call s:Request('completeStateRestoration', {})
    return s:Kept()
  endif
  let s:phase = 'restoring'
  let saved = {'editor': editor.state, 'buffers': buffers.status ==# 'available' ? buffers.state : {}}
  let numbers = restoration#restoring#Numbers(editor.state)
  let paths = map(copy(numbers), {_, number -> 'Editor/Tab-' .. number})
  call s:RequestAll(s:Claims(paths) + s:Decodes(paths), function('s:Decoded', [a:channel, saved, numbers]))
endfunction

" The states of tab pages have come. What the broker withholds stays where it is.
function! s:Decoded(channel, saved, numbers, error, results) abort
  if !empty(a:error) | return s:Failed(a:error) | endif
  let [a:saved.pages, a:saved.withheld] = [[], []]
  for index in range(len(a:numbers))
    let [number, result] = [a:numbers[index], a:results[len(a:numbers) + index]]
    if result.status ==# 'quarantined'
      call add(a:saved.withheld, number)
      continue
    endif
    let s:registered['Editor/Tab-' .. number] = 1
    if result.status ==# 'available' | call add(a:saved.pages, [number, result.state]) | endif
  endfor
  call s:RestoreWhenQuiet(a:channel, a:saved)
endfunction

function! s:Failed(error) abort
  " Another editor has taken this instance over meanwhile.
  if get(get(a:error, 'data', {}), 'kind', '') ==# 'duplicatePath' | return s:Leave() | endif
  call s:GiveUp(a:error)
endfunction

" Leaves this instance to the other editor, and continues in an instance of its own.
function! s:Leave() abort
  let s:token = ''
  let s:application = ''
  let s:registered = {}
  let s:instance = s:OwnInstance()
  call s:Request('goodbye', {'reason': 'restart'}, {error, result -> s:Initialize()})
endfunction

function! s:OwnInstance() abort
  return strftime('%Y%m%dT%H%M%S-') .. getpid()
endfunction

" Restores the layout when the user is not busy.
function! s:RestoreWhenQuiet(channel, saved) abort
  if a:channel isnot s:channel || !s:IsOpen() | return | endif
  if !restoration#restoring#IsPristine() | return s:Leave() | endif
  if mode() !=# 'n' || state('moaxw') !=# '' || getcmdwintype() !=# ''
    call timer_start(50, {-> s:RestoreWhenQuiet(a:channel, a:saved)})
    return
  endif
  call restoration#restoring#SetAside()
  let started = getcwd()
  try
    let texts = restoration#restoring#Restore(a:saved)
  catch
    let texts = [v:exception]
  endtry
  " There the names are that the user types next.
  if getcwd() !=# started && !&autochdir
    let directory = fnamemodify(getcwd(), ':~')
    if strdisplaywidth(directory) > &columns - 60 | let directory = pathshorten(directory) | endif
    call add(texts, directory .. ' is the working directory again')
  endif
  call s:Request('completeStateRestoration', {})
  " Two messages would ask for a key.
  if !empty(texts) | call s:Tell(join(texts, '; ')) | endif
  redraw
  call s:Announce('RestorationRestored')
  call s:Kept()
endfunction

function! s:Kept() abort
  if s:phase ==# 'connecting' | call restoration#restoring#SetAside() | endif
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
    let states = s:States(!s:IsUsersWord())
    call s:UnregisterClosed(states)
    for [path, state] in items(states)
      if get(s:known, path) is state | continue | endif
      call s:Send({'method': 'encodeRestorableState', 'params': {'object': s:Object(path), 'state': state}})
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
  let s:place = restoration#layout#Path(getcwd())
  if !restoration#restoring#IsPristine() | let s:instance = s:OwnInstance() | endif
  augroup RestorationEnd
    autocmd!
    autocmd VimLeavePre * call s:LeavePre()
    autocmd CmdlineLeave : let s:command = getcmdline() | call restoration#restoring#Commanded()
    autocmd ExitPre * let s:command = 'quit'
    autocmd SafeState * let s:command = ''
  augroup END
  call s:Connect()
endfunction

function! s:LeavePre() abort
  " Signals come together, as SIGHUP with SIGCONT. Vim hangs if the second one's handler interrupts an allocation.
  if v:dying | sleep 50m | endif
  try
    call s:Goodbye()
  catch
  endtry
endfunction

function! restoration#Status(cause) abort
  if s:phase ==# 'idle' | return 'Not kept: Vim was started ' .. a:cause .. '; use :RestorationStart.' | endif
  if s:phase ==# 'over' | return 'Not kept: see :messages.' | endif
  if !s:IsOpen() | return 'Not kept: no broker at ' .. restoration#Socket() | endif
  if s:application ==# '' | return 'Not kept yet: the broker has not answered.' | endif
  let notes = items(extend(copy(restoration#layout#Notes()), s:refused))
  let lines = sort(map(notes, {_, entry -> s:Title(entry[0]) .. ': ' .. entry[1]}))
  let lines += restoration#restoring#Unsaved()
  if s:isWithheld || !empty(restoration#layout#Kept().withheld)
    call add(lines, 'withheld after crashes; to release it: restorationctl quarantine release ' .. s:application)
  endif
  return join(['Kept as ' .. s:application .. (empty(lines) ? '.' : ', but:')] + lines, "\n")
endfunction
