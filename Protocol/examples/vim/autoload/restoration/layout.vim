" SPDX-License-Identifier: Apache-2.0
" The layout of the editor as plain data: saving and restoring.

" The file a buffer shows; empty for help, terminals, quickfix lists, remote files, and buffers without a name.
function! s:File(buffer) abort
  let name = bufname(a:buffer)
  if name ==# '' || getbufvar(a:buffer, '&buftype') !=# '' || name =~# '^\a[a-zA-Z+.-]\+://' | return '' | endif
  let path = fnamemodify(name, ':p')
  " A name that is not UTF-8 cannot be written as JSON.
  return json_decode(json_encode(path)) ==# path ? path : ''
endfunction

" MARK: Saving

function! s:Leaf(window) abort
  let info = getwininfo(a:window)[0]
  if getbufvar(info.bufnr, '&buftype') !=# '' | return {} | endif
  let cursor = getcurpos(a:window)
  let leaf = {'line': cursor[1], 'column': cursor[2], 'top': info.topline, 'width': info.width, 'height': info.height}
  let file = s:File(info.bufnr)
  if file !=# '' | let leaf.file = file | endif
  return leaf
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

" Listed files, if there are too many the ones used last: the state of the object "Editor/Buffers".
function! restoration#layout#Buffers(bytesMax) abort
  let infos = filter(getbufinfo({'buflisted': 1}), {_, info -> s:File(info.bufnr) !=# ''})
  call sort(infos, {a, b -> b.lastused - a.lastused})
  let bytes = 0
  let kept = []
  for info in infos
    " Room for the longest escaped form of a name, and its punctuation.
    let bytes += 6 * len(s:File(info.bufnr)) + 64
    if bytes > a:bytesMax | break | endif
    call add(kept, info)
  endfor
  call sort(kept, {a, b -> a.bufnr - b.bufnr})
  return {'buffers': map(kept, {_, info -> s:Buffer(info)})}
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
" trusted: a number becomes part of a command only as a number.
function! s:IsLocal(name) abort
  if type(a:name) != v:t_string || a:name[0] !=# '/' | return v:false | endif
  return index(['', 'file', 'dir'], getftype(resolve(a:name))) >= 0 " a pipe would be waited for
endfunction

function! s:Fill(window, leaf) abort
  call win_gotoid(a:window)
  if s:IsLocal(get(a:leaf, 'file'))
    execute 'silent! keepalt keepjumps buffer' bufadd(a:leaf.file)
    setlocal buflisted
  else
    silent! enew
  endif
  call winrestview({'lnum': a:leaf.line, 'col': a:leaf.column - 1, 'topline': a:leaf.top})
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
  if isdirectory(get(a:windows, 'directory', '')) | execute 'silent! cd' fnameescape(a:windows.directory) | endif
  for buffer in get(a:buffers, 'buffers', [])
    if s:IsLocal(buffer.file) | execute 'silent! badd' '+' .. (buffer.line + 0) fnameescape(buffer.file) | endif
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
