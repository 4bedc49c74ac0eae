" SPDX-License-Identifier: Apache-2.0
" The layout of the editor as plain data: saving and restoring.

" Options of a window and its buffer that are kept: the greatest number, or all values. None of them is evaluated, names
" a file or has anything run, and none may be added that does.
let s:options = {
  \ 'autoindent': 1, 'conceallevel': 3, 'cursorcolumn': 1, 'cursorline': 1, 'expandtab': 1, 'foldenable': 1,
  \ 'foldlevel': 999, 'foldmethod': ['manual', 'indent', 'marker', 'syntax'], 'linebreak': 1, 'list': 1, 'number': 1,
  \ 'relativenumber': 1, 'shiftwidth': 99, 'softtabstop': 99, 'tabstop': 99, 'textwidth': 9999, 'wrap': 1}
" Folds of all windows: the layout stays small.
let s:foldsMax = 4000

" The full path of a file; empty for remote ones and those that have no name.
function! s:Path(name) abort
  if a:name ==# '' || a:name =~# '^\a[a-zA-Z+.-]\+://' | return '' | endif
  let path = fnamemodify(a:name, ':p')
  " A name that is not UTF-8 cannot be written as JSON.
  return json_decode(json_encode(path)) ==# path ? path : ''
endfunction

" The file a buffer shows; empty for help, terminals, quickfix lists, remote files, and buffers without a name.
function! s:File(buffer) abort
  return getbufvar(a:buffer, '&buftype') ==# '' ? s:Path(bufname(a:buffer)) : ''
endfunction

" Whether an option is kept, and may have this value.
function! s:Allows(name, value) abort
  let values = get(s:options, a:name, [])
  if type(values) == v:t_list | return index(values, a:value) >= 0 | endif
  return type(a:value) == v:t_number && a:value >= 0 && a:value <= values
endfunction

" MARK: Saving

function! s:Leaf(window) abort
  let info = getwininfo(a:window)[0]
  if getbufvar(info.bufnr, '&buftype') !=# '' | return {} | endif
  let cursor = getcurpos(a:window)
  let leaf = {'line': cursor[1], 'column': cursor[2], 'top': info.topline, 'width': info.width, 'height': info.height}
  let file = s:File(info.bufnr)
  if file !=# '' | let leaf.file = file | endif
  " A comparison changes options of its windows.
  let Option = {name, _ -> gettabwinvar(info.tabnr, a:window, '&' .. name)}
  if file ==# '' || Option('diff', 0) | return leaf | endif
  let leaf.options = filter(map(copy(s:options), Option), function('s:Allows'))
  if has_key(leaf.options, 'foldmethod') | call extend(leaf, s:Folds(a:window)) | endif
  if argc(-1) && arglistid(a:window, info.tabnr) == 0
    let index = str2nr(trim(win_execute(a:window, 'echo argidx()')))
    if s:Path(argv(index, -1)) ==# file | let leaf.argument = index + 1 | endif
  endif
  return leaf
endfunction

" The folds of a window. Vim lists them only in a view, a script, of which the numbers are taken: "folds" are manual
" ones as [first line, last line], inner ones first; "foldsOpen" has [line, whether it is open] of those that are not
" as 'foldlevel' has it, in the order in which they are to be opened and closed.
function! s:Folds(window) abort
  let [folds, open] = [[], []]
  let [view, viewoptions] = [tempname(), &viewoptions]
  noautocmd set viewoptions=folds
  try
    call win_execute(a:window, 'mkview! ' .. fnameescape(view))
    let lines = readfile(view)
  catch
    " If there is no room for a temporary file, the rest is kept.
    return {}
  finally
    noautocmd let &viewoptions = viewoptions
    call delete(view)
  endtry
  for index in range(len(lines))
    let range = matchlist(lines[index], '\v(\d+),(\d+)fold$')
    if !empty(range)
      call add(folds, [str2nr(range[1]), str2nr(range[2])])
    elseif lines[index] =~# 'normal! z[oc]$'
      call add(open, [str2nr(lines[index - 1]), lines[index][-1 :] ==# 'o'])
    endif
  endfor
  let s:foldsLeft -= len(folds) + len(open)
  return s:foldsLeft < 0 ? {} : {'folds': folds, 'foldsOpen': open}
endfunction

" A node of winlayout() in our words; empty for windows that could not be restored.
function! s:Node(tree, selected) abort
  if a:tree[0] ==# 'leaf'
    let leaf = s:Leaf(a:tree[1])
    if !empty(leaf) && a:tree[1] == a:selected | let leaf.selected = v:true | endif
    return leaf
  endif
  let parts = filter(map(copy(a:tree[1]), {_, child -> s:Node(child, a:selected)}), {_, part -> !empty(part)})
  if len(parts) < 2 | return get(parts, 0, {}) | endif
  return {'split': a:tree[0] ==# 'row' ? 'row' : 'column', 'parts': parts}
endfunction

" Tab pages with their windows: the state of the object "Editor".
function! restoration#layout#Windows() abort
  let s:foldsLeft = s:foldsMax
  let tabs = []
  let current = 1
  for tab in range(1, tabpagenr('$'))
    let windows = s:Node(winlayout(tab), win_getid(tabpagewinnr(tab), tab))
    if empty(windows) | continue | endif
    call add(tabs, {'windows': windows})
    if tab == tabpagenr() | let current = len(tabs) | endif
  endfor
  return {'directory': getcwd(-1), 'columns': &columns, 'lines': &lines, 'tab': current, 'tabs': tabs}
endfunction

" Listed files, if there are too many the ones used last, and the argument list: the state of the object
" "Editor/Buffers".
function! restoration#layout#Buffers(bytesMax) abort
  let infos = filter(getbufinfo({'buflisted': 1}), {_, info -> s:File(info.bufnr) !=# ''})
  call sort(infos, {a, b -> b.lastused - a.lastused})
  let kept = s:Fitting(infos, {info -> s:File(info.bufnr)}, a:bytesMax / (argc(-1) ? 2 : 1))
  call sort(kept, {a, b -> a.bufnr - b.bufnr})
  let names = filter(map(argv(-1, -1), {_, name -> s:Path(name)}), {_, path -> path !=# ''})
  return {'buffers': map(kept, {_, info -> s:Buffer(info)}),
    \ 'arguments': s:Fitting(names, {name -> name}, a:bytesMax / 2)}
endfunction

" The first of these that fit into so many bytes.
function! s:Fitting(items, Name, bytesMax) abort
  let bytes = 0
  let kept = []
  for item in a:items
    " Room for the longest escaped form of a name, and its punctuation.
    let bytes += 6 * len(a:Name(item)) + 64
    if bytes > a:bytesMax | break | endif
    call add(kept, item)
  endfor
  return kept
endfunction

function! s:Buffer(info) abort
  let line = empty(a:info.windows) ? a:info.lnum : getcurpos(a:info.windows[0])[1]
  let buffer = {'file': s:File(a:info.bufnr), 'line': max([line, 1])}
  if a:info.changed | let buffer.modified = v:true | endif
  return buffer
endfunction

" MARK: Restoring

" Nothing has been opened yet, so restoring disturbs nothing.
function! restoration#layout#IsPristine() abort
  if tabpagenr('$') > 1 || winnr('$') > 1 | return 0 | endif
  return empty(filter(getbufinfo({'buflisted': 1}), {_, info -> info.name !=# '' || info.changed}))
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
    " If there is no room for all windows, the first ones are shown.
    try
      execute a:node.split ==# 'row' ? 'rightbelow vsplit' : 'rightbelow split'
    catch
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
function! s:IsLocal(name) abort
  if type(a:name) != v:t_string || a:name[0] !=# '/' || a:name =~# '[[:cntrl:]]' | return v:false | endif
  return index(['', 'file', 'dir'], getftype(resolve(a:name))) >= 0 " a pipe would be waited for
endfunction

function! s:Fill(window, leaf) abort
  call win_gotoid(a:window)
  if s:IsLocal(get(a:leaf, 'file'))
    let argument = get(a:leaf, 'argument')
    let isArgument = type(argument) == v:t_number && argument > 0 && s:Path(argv(argument - 1, -1)) ==# a:leaf.file
    execute 'silent! keepalt keepjumps' isArgument ? argument .. 'argument' : 'buffer' .. bufadd(a:leaf.file)
    setlocal buflisted
    for [name, value] in items(get(a:leaf, 'options', {}))
      if s:Allows(name, value) | silent! call setwinvar(0, '&' .. name, value) | endif
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
    call add(s:unsaved, v:swapname)
  else
    let v:swapchoice = 'd'
  endif
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

function! s:RestoreTab(tab, windows) abort
  let leaves = []
  let blank = bufnr()
  call s:Build(a:tab.windows, win_getid(), leaves)
  " Twice, because each window takes space from its neighbours.
  call s:Resize(leaves, a:windows)
  call s:Resize(leaves, a:windows)
  let selected = leaves[0][0]
  for [window, leaf, _] in leaves
    call s:Fill(window, leaf)
    if has_key(leaf, 'selected') | let selected = window | endif
  endfor
  call win_gotoid(selected)
  call s:Forget(blank)
endfunction

function! s:Restore(windows, buffers) abort
  let directory = get(a:windows, 'directory')
  if s:IsLocal(directory) && isdirectory(directory) | execute 'silent! cd' fnameescape(directory) | endif
  for buffer in get(a:buffers, 'buffers', [])
    if s:IsLocal(buffer.file) | execute 'silent! badd' '+' .. (buffer.line + 0) fnameescape(buffer.file) | endif
  endfor
  for name in get(a:buffers, 'arguments', [])
    if s:IsLocal(name) | execute 'silent! $argadd' fnameescape(name) | endif
  endfor
  let tabs = get(a:windows, 'tabs', [])
  " All tab pages first: the line of tabs takes its space from the windows.
  for _ in tabs[1:]
    silent $tabnew
  endfor
  for index in range(len(tabs))
    execute 'tabnext' index + 1
    call s:RestoreTab(tabs[index], a:windows)
  endfor
  let tab = get(a:windows, 'tab', 1) + 0
  if tab <= tabpagenr('$') | execute 'tabnext' tab | endif
endfunction

" Puts windows and buffers back; swap files that hold unsaved changes.
function! restoration#layout#Restore(windows, buffers) abort
  let s:unsaved = []
  let [equalalways, hidden] = [&equalalways, &hidden]
  " Room for every split, and no question about the blank buffer.
  set equalalways hidden
  augroup RestorationSwap
    autocmd!
    autocmd SwapExists * call s:AnswerSwapFile()
  augroup END
  try
    call s:Restore(a:windows, a:buffers)
  finally
    let [&equalalways, &hidden] = [equalalways, hidden]
    autocmd! RestorationSwap
  endtry
  return s:unsaved
endfunction
