" SPDX-License-Identifier: Apache-2.0
" The layout of the editor as plain data, and what of it has changed.

" Options of a window and its buffer that are kept: the greatest number, or all values. None of them is evaluated, names
" a file or has anything run, and none may be added that does.
let s:options = {
  \ 'autoindent': 1, 'conceallevel': 3, 'cursorcolumn': 1, 'cursorline': 1, 'expandtab': 1, 'foldenable': 1,
  \ 'foldlevel': 999, 'foldmethod': ['manual', 'indent', 'marker', 'syntax'], 'linebreak': 1, 'list': 1, 'number': 1,
  \ 'relativenumber': 1, 'shiftwidth': 99, 'softtabstop': 99, 'tabstop': 99, 'textwidth': 9999, 'wrap': 1}
" Folds of a tab page: its state stays small.
let s:foldsMax = 4000

" What was found by the last look, which is only repeated where something may have changed: a look at a window makes a
" view. By window: {'place', 'leaf'}; by number of tab page: {'form', 'state'}.
let s:windows = {}
let s:pages = {}
let s:editor = {}
let s:buffers = {}
let s:arguments = []
" Windows to look at; whether to look at every one, and at the list of buffers.
let s:marked = {}
let s:areAllMarked = 1
let s:isListMarked = 1
" Whether the screen was lost since the last look, and sizes are those of that look.
let s:isScreenLost = 0
" By path: what is left out of a state.
let s:notes = {}

" The number that the next tab page gets. It stays with the tab page, as t:restoration_number.
let s:nextNumber = 1
" What is saved other than it is shown. "aside" has windows that the user's settings have opened, which without a file
" come again by themselves. What could not be restored stays saved until the user changes it: "directories" has, by what
" they are of, the saved one and the one there was instead; "crowded" has, by number of tab page, the saved state and
" what there was room for; "withheld" has numbers of tab pages.
let s:kept = {'aside': {}, 'directories': {}, 'crowded': {}, 'withheld': []}

function! restoration#layout#Kept() abort
  return s:kept
endfunction

" The full path of a file; empty for remote ones and those that have no name.
function! restoration#layout#Path(name) abort
  if a:name ==# '' || a:name =~# '^\a[a-zA-Z+.-]\+://' | return '' | endif
  let path = fnamemodify(a:name, ':p')
  " A name that is not UTF-8 cannot be written as JSON.
  return json_decode(json_encode(path)) ==# path ? path : ''
endfunction

" The file a buffer shows; empty for help, terminals, quickfix lists, remote files, and buffers without a name.
function! s:File(buffer) abort
  return getbufvar(a:buffer, '&buftype') ==# '' ? restoration#layout#Path(bufname(a:buffer)) : ''
endfunction

" Whether a buffer shows a file, and not a listing of a directory.
function! restoration#layout#ShowsFile(buffer) abort
  let file = s:File(a:buffer)
  return file !=# '' && !isdirectory(file)
endfunction

" Whether an option is kept, and may have this value.
function! restoration#layout#Allows(name, value) abort
  let values = get(s:options, a:name, [])
  if type(values) == v:t_list | return index(values, a:value) >= 0 | endif
  return type(a:value) == v:t_number && a:value >= 0 && a:value <= values
endfunction

" MARK: Changes

" An event concerns the current window; with the subject "buffer" all windows that show the event's buffer, with "list"
" the list of buffers as well, with "all" every window.
function! restoration#layout#Mark(subject) abort
  let s:marked[win_getid()] = 1
  if a:subject ==# 'window' | return | endif
  let buffer = str2nr(expand('<abuf>'))
  for window in win_findbuf(buffer ? buffer : bufnr())
    let s:marked[window] = 1
  endfor
  if a:subject ==# 'list' | let s:isListMarked = 1 | endif
  if a:subject ==# 'all' | let s:areAllMarked = 1 | endif
endfunction

" The new value, or the former one if it is the same.
function! s:Same(former, new) abort
  return a:former ==# a:new ? a:former : a:new
endfunction

" MARK: Saving

function! s:Leaf(info) abort
  let [window, tab, buffer] = [a:info.winid, a:info.tabnr, a:info.bufnr]
  if getbufvar(buffer, '&buftype') !=# '' | return {} | endif
  if has_key(s:kept.aside, window) && !restoration#layout#ShowsFile(buffer) | return {} | endif
  let cursor = getcurpos(window)
  let leaf = {'line': cursor[1], 'column': cursor[2], 'top': a:info.topline, 'width': a:info.width,
    \ 'height': a:info.height}
  if s:isScreenLost && has_key(s:windows, window)
    call extend(leaf, filter(copy(s:windows[window].leaf), {name, _ -> index(['top', 'width', 'height'], name) >= 0}))
  endif
  let directory = s:Directory(window, haslocaldir(window, tab) == 1 ? getcwd(window, tab) : '')
  if directory !=# '' | let leaf.directory = directory | endif
  let file = s:File(buffer)
  if file !=# '' | let leaf.file = file | endif
  " A comparison changes options of its windows.
  let Option = {name, _ -> gettabwinvar(tab, window, '&' .. name)}
  if file ==# '' || isdirectory(file) || Option('diff', 0) | return leaf | endif
  let leaf.options = filter(map(copy(s:options), Option), function('restoration#layout#Allows'))
  if has_key(leaf.options, 'foldmethod') | call extend(leaf, s:Folds(window)) | endif
  if !empty(s:arguments) && arglistid(window, tab) == 0
    let index = str2nr(trim(win_execute(window, 'echo argidx()')))
    if get(s:arguments, index, '') ==# file | let leaf.argument = index + 1 | endif
  endif
  return leaf
endfunction

" The lines of a view of a window; none if there is no room for the file. It lies beside the socket, in a directory of
" its own that no one else can enter. tempname() would make the directory for temporary files, and Vim must not have one
" because of us: if a second signal comes while a first one makes Vim remove it, Vim removes what that is in, often /tmp.
function! s:View(window) abort
  let folder = printf('%s/vim-%d-%u', fnamemodify(restoration#Socket(), ':h'), getpid(), rand())
  let viewoptions = &viewoptions
  noautocmd set viewoptions=folds
  try
    call mkdir(folder, '', 0o700)
    call win_execute(a:window, 'mkview ' .. fnameescape(folder .. '/view'))
    return readfile(folder .. '/view')
  catch
    return []
  finally
    noautocmd let &viewoptions = viewoptions
    call delete(folder, 'rf')
  endtry
endfunction

" The folds of a window. Vim lists them only in a view, a script, of which the numbers are taken: "folds" are manual
" ones as [first line, last line], inner ones first; "foldsOpen" has [line, whether it is open] of those that are not
" as 'foldlevel' has it, in the order in which they are to be opened and closed.
function! s:Folds(window) abort
  let [folds, open] = [[], []]
  let lines = s:View(a:window)
  if empty(lines) | return {} | endif
  for index in range(len(lines))
    let range = matchlist(lines[index], '\v(\d+),(\d+)fold$')
    if !empty(range)
      call add(folds, [str2nr(range[1]), str2nr(range[2])])
    elseif lines[index] =~# 'normal! z[oc]$'
      call add(open, [str2nr(lines[index - 1]), lines[index][-1 :] ==# 'o'])
    endif
  endfor
  return {'folds': folds, 'foldsOpen': open}
endfunction

" A node of winlayout() in our words; empty for windows that could not be restored.
function! s:Node(tree, selected) abort
  if a:tree[0] ==# 'leaf'
    let leaf = copy(get(s:windows, a:tree[1], {'leaf': {}}).leaf)
    let s:foldsLeft -= len(get(leaf, 'folds', [])) + len(get(leaf, 'foldsOpen', []))
    if s:foldsLeft < 0 && has_key(leaf, 'folds') | call filter(leaf, {key, _ -> key !~# '^folds'}) | endif
    if !empty(leaf) && a:tree[1] == a:selected | let leaf.selected = v:true | endif
    return leaf
  endif
  let parts = filter(map(copy(a:tree[1]), {_, child -> s:Node(child, a:selected)}), {_, part -> !empty(part)})
  if len(parts) < 2 | return get(parts, 0, {}) | endif
  return {'split': a:tree[0] ==# 'row' ? 'row' : 'column', 'parts': parts}
endfunction

" The number of a tab page, which it is given if it has none.
function! restoration#layout#Number(tab, number = s:nextNumber) abort
  let number = gettabvar(a:tab, 'restoration_number')
  if type(number) == v:t_number | return number | endif
  let number = a:number
  while index(s:kept.withheld, number) >= 0
    let number += 1
  endwhile
  call settabvar(a:tab, 'restoration_number', number)
  let s:nextNumber = max([s:nextNumber, number + 1])
  return number
endfunction

" The tab page with a number.
function! restoration#layout#Tab(number) abort
  return get(filter(range(1, tabpagenr('$')), {_, tab -> gettabvar(tab, 'restoration_number') is a:number}), 0)
endfunction

" Looks at a tab page, and closely at those of its windows that may have changed.
function! s:Look(tab, number) abort
  let [former, isChanged] = [get(s:pages, a:number, {'form': [], 'state': {}}), 0]
  for window in gettabinfo(a:tab)[0].windows
    let info = getwininfo(window)[0]
    let place = [info.bufnr, info.width, info.height, info.topline] + getcurpos(window)[1:2]
    if !has_key(s:marked, window) && place ==# get(s:windows, window, {'place': []}).place | continue | endif
    let leaf = s:Leaf(info)
    let isChanged = isChanged || leaf !=# get(s:windows, window, {'leaf': {}}).leaf
    let s:windows[window] = {'place': place, 'leaf': leaf}
  endfor
  let selected = win_getid(tabpagewinnr(a:tab), a:tab)
  let directory = s:Directory('tab' .. a:number, haslocaldir(-1, a:tab) == 2 ? getcwd(-1, a:tab) : '')
  let form = [winlayout(a:tab), selected, directory]
  if !isChanged && form ==# former.form | return former | endif
  return {'form': form, 'state': s:Same(former.state, s:Page(a:tab, a:number, form))}
endfunction

" The windows and buffers of a tab page.
function! restoration#layout#Shown(tab) abort
  return [winlayout(a:tab), tabpagebuflist(a:tab)]
endfunction

" The state of the object "Editor/Tab-<number>"; empty if none of its windows could be restored.
function! s:Page(tab, number, form) abort
  let [path, crowded] = ['Editor/Tab-' .. a:number, get(s:kept.crowded, a:number, {'shown': []})]
  if crowded.shown ==# restoration#layout#Shown(a:tab)
    call s:Note(path, 'there is no room for all of its windows, and it stays saved as it was')
    return crowded.state
  endif
  let [layout, selected, directory] = a:form
  let s:foldsLeft = s:foldsMax
  let state = {'windows': s:Node(layout, selected)}
  if directory !=# '' | let state.directory = directory | endif
  call s:Note(path, s:foldsLeft < 0 ? 'folds beyond ' .. s:foldsMax .. ' are left out' : '')
  return empty(state.windows) ? {} : state
endfunction

" The first of these that fit into so many bytes as JSON.
function! s:Fitting(items, bytesMax) abort
  let [bytes, kept] = [0, []]
  for item in a:items
    let bytes += len(json_encode(item)) + 1
    if bytes > a:bytesMax | break | endif
    call add(kept, item)
  endfor
  return kept
endfunction

" Listed files, if there are too many the ones used last, and the argument list: the state of the object
" "Editor/Buffers". The line of a buffer that is shown is that of its window.
function! s:Buffers(bytesMax) abort
  let infos = filter(getbufinfo({'buflisted': 1}), {_, info -> s:File(info.bufnr) !=# ''})
  call sort(infos, {a, b -> b.lastused - a.lastused})
  let buffers = map(copy(infos), {_, info ->
    \ extend({'file': restoration#layout#Path(info.name)}, empty(info.windows) ? {'line': max([info.lnum, 1])} : {})})
  let arguments = s:Fitting(filter(copy(s:arguments), {_, path -> path !=# ''}), a:bytesMax / 2)
  let kept = s:Fitting(buffers, a:bytesMax - len(json_encode(arguments)) - 32)
  let left = len(buffers) - len(kept) + len(s:arguments) - len(arguments)
  let words = ' names are left out, of the files used longest ago and of arguments'
  call s:Note('Editor/Buffers', left ? left .. words : '')
  let order = sort(range(len(kept)), {a, b -> infos[a].bufnr - infos[b].bufnr})
  return {'buffers': map(order, {_, index -> kept[index]}), 'arguments': arguments}
endfunction

" The states of all objects by path: where nothing has changed the very ones of the call before. Vim takes a terminal
" that is gone for one of 80 columns and 24 lines: if that may be so, another size than before is not believed.
function! restoration#layout#States(bytesMax, mayHaveLostScreen) abort
  let screen = {'columns': &columns, 'lines': &lines}
  let former = filter(copy(s:editor), {name, _ -> has_key(screen, name)})
  let s:isScreenLost = a:mayHaveLostScreen && !empty(former) && former !=# screen
  let arguments = map(argv(-1, -1), {_, name -> restoration#layout#Path(name)})
  if arguments !=# s:arguments
    " A window knows where in the list it is.
    let [s:arguments, s:windows, s:areAllMarked, s:isListMarked] = [arguments, {}, 1, 1]
  endif
  let tabs = {tabpagenr(): 1}
  for window in keys(s:marked)
    let tabs[win_id2tabwin(window)[0]] = 1
  endfor
  let [states, pages, numbers, current] = [{}, {}, [], 1]
  for tab in range(1, tabpagenr('$'))
    let number = restoration#layout#Number(tab)
    let isMarked = s:areAllMarked || has_key(tabs, tab) || !has_key(s:pages, number)
    let page = isMarked ? s:Look(tab, number) : s:pages[number]
    let pages[number] = page
    if empty(page.state) | continue | endif
    let states['Editor/Tab-' .. number] = page.state
    call add(numbers, number)
    if tab == tabpagenr() | let current = len(numbers) | endif
  endfor
  if s:areAllMarked | call filter(s:windows, {window, _ -> win_id2tabwin(window)[0]}) | endif
  let [s:pages, s:marked, s:areAllMarked] = [pages, {}, 0]
  call filter(s:notes, {path, _ -> has_key(states, path) || path ==# 'Editor/Buffers'})
  let s:editor = s:Same(s:editor, extend({'directory': s:Directory('', getcwd(-1)), 'tab': current,
    \ 'tabs': numbers + s:kept.withheld}, s:isScreenLost ? former : screen))
  if s:isListMarked | let [s:buffers, s:isListMarked] = [s:Same(s:buffers, s:Buffers(a:bytesMax)), 0] | endif
  return extend(states, {'Editor': s:editor, 'Editor/Buffers': s:buffers})
endfunction

" By path, what of it is left out, in words.
function! restoration#layout#Notes() abort
  return s:notes
endfunction

function! s:Note(path, text) abort
  if a:text !=# ''
    let s:notes[a:path] = a:text
  elseif has_key(s:notes, a:path)
    unlet s:notes[a:path]
  endif
endfunction

" The directory to save of the editor, a tab page or a window: the one there is, or a saved one that was not there and
" that the user has not replaced.
function! s:Directory(key, current) abort
  let missing = get(s:kept.directories, a:key, {'instead': v:null})
  return a:current ==# missing.instead ? missing.saved : a:current
endfunction
