" SPDX-License-Identifier: Apache-2.0
" Puts a saved layout back.

" Whether a command that the user has typed may have opened what there is. Only then windows without files count.
let s:isCommanded = 0
" Files and their swap files, which hold unsaved changes.
let s:unsaved = []

function! restoration#restoring#Commanded() abort
  let s:isCommanded = 1
endfunction

" The user has opened nothing yet, so restoring disturbs nothing.
function! restoration#restoring#IsPristine() abort
  let opened = filter(getbufinfo({'buflisted': 1}), {_, info -> getbufvar(info.bufnr, '&buftype') ==# '' &&
    \ (info.changed || restoration#layout#ShowsFile(info.bufnr))})
  if !empty(opened) | return 0 | endif
  return !s:isCommanded || tabpagenr('$') == 1 && winnr('$') == 1 && &buftype ==# '' && bufname() ==# ''
endfunction

" The window of this tab page in which the user begins: not what his settings have opened at its side.
function! s:MainWindow() abort
  let windows = map(range(1, winnr('$')), {_, number -> win_getid(number)})
  let Has = {window, option -> getwinvar(window, '&' .. option)}
  let blank = filter(copy(windows), {_, window -> Has(window, 'buftype') ==# '' && bufname(winbufnr(window)) ==# ''})
  let free = filter(copy(windows), {_, window -> !Has(window, 'winfixwidth') && !Has(window, 'winfixheight')})
  let best = !empty(blank) ? blank : !empty(free) ? free : windows
  return index(best, win_getid()) >= 0 ? win_getid() : best[0]
endfunction

" Puts aside what the user's settings have opened and shows no file: it is not saved, because they open it again.
function! restoration#restoring#SetAside() abort
  if s:isCommanded | return | endif
  let [main, aside] = [s:MainWindow(), restoration#layout#Kept().aside]
  for info in getwininfo()
    if info.winid != main && !restoration#layout#ShowsFile(info.bufnr) | let aside[info.winid] = 1 | endif
  endfor
endfunction

" Splits a window into a node's parts; adds [window, leaf, directions] for each leaf; directions are those of the splits
" above it in which neighbours share its space.
function! s:Build(node, window, leaves, directions = []) abort
  if !has_key(a:node, 'split')
    call add(a:leaves, [a:window, a:node, a:directions])
    return
  endif
  let windows = [a:window]
  for _ in a:node.parts[1:]
    call win_gotoid(windows[-1])
    " If there is no room for all windows, the first ones are shown, and the others stay saved.
    try
      execute a:node.split ==# 'row' ? 'rightbelow vsplit' : 'rightbelow split'
    catch
      let s:isCrowded = 1
      break
    endtry
    call add(windows, win_getid())
  endfor
  for index in range(len(windows))
    call s:Build(a:node.parts[index], windows[index], a:leaves, a:directions + [a:node.split])
  endfor
endfunction

" Whether a saved name is that of a file here: others are read by plugins, which run programs. Nothing that is saved is
" trusted: a number becomes part of a command only as a number, and of a name with a new line the second would be one.
" Of "/directory/ftp://host/file" Vim would show, and later read, a remote file.
function! s:IsLocal(name) abort
  if type(a:name) != v:t_string || a:name[0] !=# '/' || a:name =~# '[[:cntrl:]]\|://' | return v:false | endif
  return index(['', 'file', 'dir'], getftype(resolve(a:name))) >= 0 " a pipe would be waited for
endfunction

" Changes the directory of the editor, a tab page or a window to a saved one. One that is not there stays saved.
function! s:ChangeDirectory(command, key, current, saved) abort
  if !s:IsLocal(a:saved) | return | endif
  if isdirectory(a:saved)
    execute 'silent!' a:command fnameescape(a:saved)
  else
    let kept = restoration#layout#Kept()
    let kept.directories[a:key] = {'saved': a:saved, 'instead': a:current}
  endif
endfunction

function! s:Fill(window, leaf) abort
  call win_gotoid(a:window)
  call s:ChangeDirectory('lcd', a:window, '', get(a:leaf, 'directory'))
  if s:IsLocal(get(a:leaf, 'file')) && isdirectory(a:leaf.file)
    " Only this has the listing made.
    execute 'silent! keepalt keepjumps edit' fnameescape(a:leaf.file)
  elseif s:IsLocal(get(a:leaf, 'file'))
    let argument = get(a:leaf, 'argument')
    let isNumber = type(argument) == v:t_number && argument > 0
    let isArgument = isNumber && restoration#layout#Path(argv(argument - 1, -1)) ==# a:leaf.file
    execute 'silent! keepalt keepjumps' isArgument ? argument .. 'argument' : 'buffer' .. bufadd(a:leaf.file)
    setlocal buflisted
    for [name, value] in items(get(a:leaf, 'options', {}))
      if restoration#layout#Allows(name, value) | silent! call setwinvar(0, '&' .. name, value) | endif
    endfor
    if has_key(a:leaf, 'folds') | call s:Fold(a:leaf) | endif
  else
    silent! enew
  endif
  call winrestview({'lnum': a:leaf.line, 'col': a:leaf.column - 1, 'topline': a:leaf.top})
endfunction

" Makes the folds of the current window. Only manual ones: with 'foldmethod' "marker" that would change the text.
function! s:Fold(leaf) abort
  if &foldmethod ==# 'manual'
    silent! normal! zE
    for [first, last] in s:Pairs(a:leaf.folds)
      execute 'silent!' first .. ',' .. last .. 'fold'
    endfor
  endif
  " All are open or closed as it says, before some differ.
  let &l:foldlevel = &l:foldlevel
  for [line, isOpen] in s:Pairs(get(a:leaf, 'foldsOpen', []))
    execute 'silent!' line .. (isOpen ? 'foldopen' : 'foldclose')
  endfor
endfunction

" The pairs of numbers in a list: they become parts of commands.
function! s:Pairs(list) abort
  let numbers = [v:t_number, v:t_number]
  return filter(copy(a:list), {_, pair -> type(pair) == v:t_list && map(copy(pair), 'type(v:val)') == numbers})
endfunction

" Decides about a swap file, which a killed editor leaves behind, instead of asking.
function! s:AnswerSwapFile() abort
  let swap = swapinfo(v:swapname)
  let pid = get(swap, 'pid')
  " Vim 9.0 also names a process that has ended.
  if pid > 0 && pid != getpid() && isdirectory('/proc/' .. pid)
    let v:swapchoice = 'o'
  elseif get(swap, 'dirty', 1)
    " Kept for :recover.
    let v:swapchoice = 'e'
    call add(s:unsaved, [expand('<afile>:p'), fnamemodify(v:swapname, ':p')])
  else
    let v:swapchoice = 'd'
  endif
endfunction

" A line for each swap file that holds unsaved changes, and is still there.
function! restoration#restoring#Unsaved() abort
  let pairs = filter(copy(s:unsaved), {_, pair -> filereadable(pair[1])})
  return map(pairs, {_, pair -> pair[0] .. ': unsaved changes are in ' .. pair[1] .. '; see :help recovery'})
endfunction

function! s:Resize(leaves, windows) abort
  for [window, leaf, directions] in a:leaves
    let number = win_id2win(window)
    let width = float2nr(round(1.0 * leaf.width * &columns / a:windows.columns))
    let height = float2nr(round(1.0 * leaf.height * &lines / a:windows.lines))
    if index(directions, 'row') >= 0 | execute 'vertical' number .. 'resize' width | endif
    if index(directions, 'column') >= 0 | execute number .. 'resize' height | endif
  endfor
endfunction

" Removes the blank buffer that a window began with.
function! s:Forget(buffer) abort
  let isBlank = bufexists(a:buffer) && bufname(a:buffer) ==# '' && !getbufvar(a:buffer, '&modified')
  if isBlank && empty(win_findbuf(a:buffer)) | execute 'silent! bwipeout' a:buffer | endif
endfunction

" Restores a tab page into the current one. If there is no room for all of its windows, it stays saved as it is.
function! s:RestoreTab(number, page, editor) abort
  call win_gotoid(s:MainWindow())
  call s:ChangeDirectory('tcd', 'tab' .. a:number, '', get(a:page, 'directory'))
  let [leaves, blank] = [[], bufnr()]
  call s:Build(a:page.windows, win_getid(), leaves)
  " Twice, because each window takes space from its neighbours.
  call s:Resize(leaves, a:editor)
  call s:Resize(leaves, a:editor)
  let selected = leaves[0][0]
  for [window, leaf, _] in leaves
    call s:Fill(window, leaf)
    if has_key(leaf, 'selected') | let selected = window | endif
  endfor
  call win_gotoid(selected)
  call s:Forget(blank)
endfunction

function! s:Restore(editor, pages, buffers) abort
  for buffer in get(a:buffers, 'buffers', [])
    let line = get(buffer, 'line', 1) + 0
    if s:IsLocal(buffer.file) | execute 'silent! badd' '+' .. line fnameescape(buffer.file) | endif
  endfor
  for name in get(a:buffers, 'arguments', [])
    if s:IsLocal(name) | execute 'silent! $argadd' fnameescape(name) | endif
  endfor
  " Only this shortens their names to what the user sees.
  call s:ChangeDirectory('cd', '', getcwd(-1), get(a:editor, 'directory'))
  " All tab pages first: the line of tabs takes its space from the windows.
  for _ in a:pages[1:]
    silent $tabnew
  endfor
  for index in range(len(a:pages))
    let [number, page] = a:pages[index]
    execute 'tabnext' index + 1
    call restoration#layout#Number(index + 1, number)
    let s:isCrowded = 0
    try
      call s:RestoreTab(number, page, a:editor)
    catch
      let [s:isCrowded, s:fault] = [1, v:exception]
    endtry
    if !s:isCrowded | continue | endif
    let kept = restoration#layout#Kept()
    let kept.crowded[number] = {'state': page, 'shown': restoration#layout#Shown(index + 1)}
  endfor
  let tab = get(a:editor, 'tab', 1) + 0
  if tab <= tabpagenr('$') | execute 'tabnext' tab | endif
endfunction

" The numbers of the tab pages in the state of "Editor", in their order.
function! restoration#restoring#Numbers(editor) abort
  let [tabs, numbers, seen] = [get(a:editor, 'tabs'), [], {}]
  for tab in type(tabs) == v:t_list ? tabs : []
    if type(tab) != v:t_number || tab < 1 || tab > 999999 || has_key(seen, tab) | continue | endif
    let seen[tab] = 1
    call add(numbers, tab)
  endfor
  return numbers
endfunction

" Puts back what is saved: "editor", "pages" as [number, state], "withheld" numbers of others, which stay in the order
" of tab pages, and "buffers". Returns what to tell the user.
function! restoration#restoring#Restore(saved) abort
  let [kept, s:fault] = [restoration#layout#Kept(), '']
  let kept.withheld = a:saved.withheld
  " Earlier versions of this plugin kept tab pages in the state of "Editor".
  let former = filter(copy(get(a:saved.editor, 'tabs', [])), {_, tab -> type(tab) == v:t_dict})
  let numbers = a:saved.withheld + map(copy(a:saved.pages), {_, page -> page[0]})
  let pages = a:saved.pages + map(former, {index, page -> [max([0] + numbers) + 1 + index, page]})
  let [equalalways, hidden] = [&equalalways, &hidden]
  " Room for every split, and no question about the blank buffer.
  set equalalways hidden
  augroup RestorationSwap
    autocmd!
    autocmd SwapExists * call s:AnswerSwapFile()
  augroup END
  try
    call s:Restore(a:saved.editor, pages, a:saved.buffers)
  finally
    let [&equalalways, &hidden] = [equalalways, hidden]
    autocmd! RestorationSwap
  endtry
  let texts = s:fault ==# '' ? [] : [s:fault]
  let text = ' tab page(s) withheld after crashes: see :RestorationStatus'
  if !empty(a:saved.withheld) | call add(texts, len(a:saved.withheld) .. text) | endif
  " One file may have several swap files.
  let files = uniq(map(copy(s:unsaved), {_, pair -> fnamemodify(pair[0], ':t')}))
  let more = len(files) > 1 ? printf(' and %d more', len(files) - 1) : ''
  if !empty(files) | call add(texts, 'unsaved: ' .. files[0] .. more .. '; see :help recovery') | endif
  return texts
endfunction
