-- SPDX-License-Identifier: Apache-2.0
-- The layout of the editor as plain data, and what of it has changed.
local M = {}
local api, fn = vim.api, vim.fn

--- Options of a window and its buffer that are kept: the greatest number, or all values. None of them is evaluated,
--- names a file or has anything run, and none may be added that does.
local OPTIONS = {
  autoindent = 1, conceallevel = 3, cursorcolumn = 1, cursorline = 1, expandtab = 1, foldenable = 1, foldlevel = 999,
  foldmethod = { 'manual', 'indent', 'marker', 'syntax' }, linebreak = 1, list = 1, number = 1, relativenumber = 1,
  shiftwidth = 99, softtabstop = 99, tabstop = 99, textwidth = 9999, wrap = 1,
}
--- Folds of a tab page: its state stays small.
local FOLDS = 4000
--- The variable of a tab page with its number, which stays with it.
local NUMBER = 'restoration_number'

--- What was found by the last look, which is only repeated where something may have changed: a look at a window makes a
--- view. By window: `place` and `leaf`; by number of tab page: `form`, `state` and its text.
local found = { windows = {}, pages = {}, arguments = {} }
--- Windows to look at; whether to look at every one, and at the list of buffers.
local marked = { windows = {}, all = true, list = true }
--- By path: what is left out of a state.
local notes = {}
--- The number that the next tab page gets.
local nextNumber = 1
--- What is saved other than it is shown. `aside` has windows that the user's settings have opened, which without a file
--- come again by themselves. What could not be restored stays saved until the user changes it: `directories` has, by
--- what they are of, the saved one and the one there was instead; `crowded` has, by number of tab page, the saved state
--- and what there was room for; `withheld` has numbers of tab pages.
local kept = { aside = {}, directories = {}, crowded = {}, withheld = {} }
M.kept = kept

--- A name that is not UTF-8 cannot be written as JSON.
local function sayable(name) return pcall(fn.json_encode, name) and name or nil end

--- Nil for remote files, and if there is no name.
function M.path(name)
  if name == '' or name:match('^%a[%w+.-]+://') then return nil end
  return sayable(fn.fnamemodify(name, ':p'))
end

--- The file a buffer shows; nil for help, terminals, quickfix lists, remote files, and buffers without a name.
local function file(buffer)
  return vim.bo[buffer].buftype == '' and M.path(api.nvim_buf_get_name(buffer)) or nil
end

function M.isNumber(value, least, most)
  return type(value) == 'number' and value % 1 == 0 and value >= least and value <= most
end

--- Whether an option is kept, and may have this value.
function M.allows(name, value)
  local values = OPTIONS[name]
  if type(values) == 'table' then return vim.tbl_contains(values, value) end
  return values ~= nil and M.isNumber(value, 0, values)
end

--- Whether a buffer shows a file, and not a listing of a directory.
function M.showsFile(buffer)
  local name = file(buffer)
  return name ~= nil and fn.isdirectory(name) == 0
end

-- MARK: Changes

--- An event concerns the current window; with the subject "buffer" all windows that show the event's buffer, with
--- "list" the list of buffers as well, with "all" every window.
function M.mark(subject, buffer)
  marked.windows[api.nvim_get_current_win()] = true
  if subject == 'window' then return end
  local windows = fn.win_findbuf(buffer > 0 and buffer or api.nvim_get_current_buf())
  for _, window in ipairs(windows) do marked.windows[window] = true end
  if subject ~= 'buffer' then marked[subject] = true end
end

--- The directory to save of the editor, a tab page or a window: the one there is, or a saved one that was not there and
--- that the user has not replaced.
local function directory(key, current)
  local missing = kept.directories[key]
  return sayable(missing and missing.instead == current and missing.saved or current)
end

--- A state and its text: the former one if it is the same.
local function same(former, state)
  local text = fn.json_encode(state)
  if former and former.text == text then return former end
  return { state = state, text = text }
end

local function note(path, text) notes[path] = text end

-- MARK: Saving

--- Adds the folds of a window. Neovim lists them only in a view, a script, of which the numbers are taken: `folds` are
--- manual ones as {first line, last line}, inner ones first; `foldsOpen` has {line, whether it is open} of those that
--- are not as 'foldlevel' has it, in the order in which they are to be opened and closed.
local function addFolds(leaf, window)
  local view, viewoptions = fn.tempname(), vim.o.viewoptions
  vim.cmd('noautocmd set viewoptions=folds')
  local done, lines = pcall(api.nvim_win_call, window, function()
    vim.cmd('mkview! ' .. fn.fnameescape(view))
    return fn.readfile(view)
  end)
  vim.cmd('noautocmd set viewoptions=' .. viewoptions)
  fn.delete(view)
  -- If there is no room for a temporary file, the rest is kept.
  if not done then return end
  local folds, open, before = {}, {}, nil
  for _, line in ipairs(lines) do
    local first, last = line:match('(%d+),(%d+)fold$')
    local turned = line:match('normal! z([oc])$')
    if first then folds[#folds + 1] = { tonumber(first), tonumber(last) } end
    if turned then open[#open + 1] = { tonumber(before), turned == 'o' and 1 or 0 } end
    before = line
  end
  leaf.folds, leaf.foldsOpen = folds, open
end

--- Adds what is kept of a window with a file: its options, its folds, and where in the argument list it is.
local function addView(leaf, window)
  local tab = fn.win_id2tabwin(window)[1]
  leaf.options = {}
  for name in pairs(OPTIONS) do
    local value = fn.gettabwinvar(tab, window, '&' .. name)
    if M.allows(name, value) then leaf.options[name] = value end
  end
  if leaf.options.foldmethod then addFolds(leaf, window) end
  if #found.arguments > 0 and fn.arglistid(window, tab) == 0 then
    local index = api.nvim_win_call(window, fn.argidx)
    if found.arguments[index + 1] == leaf.file then leaf.argument = index + 1 end
  end
end

local function leaf(window, tab)
  local buffer = api.nvim_win_get_buf(window)
  if vim.bo[buffer].buftype ~= '' or kept.aside[window] and not M.showsFile(buffer) then return nil end
  local cursor = api.nvim_win_get_cursor(window)
  local isLocal = fn.haslocaldir(window, tab) == 1
  local result = {
    directory = directory(window, isLocal and fn.getcwd(window, tab) or nil),
    file = file(buffer),
    line = cursor[1],
    column = cursor[2] + 1,
    top = fn.line('w0', window),
    width = api.nvim_win_get_width(window),
    height = api.nvim_win_get_height(window),
  }
  -- A comparison changes options of its windows.
  if M.showsFile(buffer) and not vim.wo[window].diff then addView(result, window) end
  return result
end

--- A node of winlayout() in our words. Windows that could not be restored are left out.
local function node(tree, selected, room)
  if tree[1] == 'leaf' then
    local result = vim.deepcopy((found.windows[tree[2]] or {}).leaf)
    if not result then return nil end
    room.folds = room.folds - #(result.folds or {}) - #(result.foldsOpen or {})
    if room.folds < 0 then result.folds, result.foldsOpen = nil, nil end
    if tree[2] == selected then result.selected = true end
    return result
  end
  local parts = {}
  for _, child in ipairs(tree[2]) do parts[#parts + 1] = node(child, selected, room) end
  if #parts < 2 then return parts[1] end
  return { split = tree[1] == 'row' and 'row' or 'column', parts = parts }
end

--- The state of the object "Editor/Tab-<number>"; nil if none of its windows could be restored.
local function page(position, number, form)
  local path, crowded = 'Editor/Tab-' .. number, kept.crowded[number]
  if crowded and vim.deep_equal(crowded.shown, M.shown(position)) then
    note(path, 'there is no room for all of its windows, and it stays saved as it was')
    return crowded.state
  end
  local room = { folds = FOLDS }
  local windows = node(form.layout, form.selected, room)
  note(path, room.folds < 0 and ('folds beyond %d are left out'):format(FOLDS) or nil)
  return windows and { windows = windows, directory = form.directory }
end

--- The windows and buffers of a tab page, by its position.
function M.shown(position) return { fn.winlayout(position), fn.tabpagebuflist(position) } end

--- Looks at a tab page, and closely at those of its windows that may have changed.
local function look(tab, number)
  local position, isChanged = api.nvim_tabpage_get_number(tab), false
  for _, window in ipairs(api.nvim_tabpage_list_wins(tab)) do
    local cursor = api.nvim_win_get_cursor(window)
    local place = table.concat({
      api.nvim_win_get_buf(window), api.nvim_win_get_width(window), api.nvim_win_get_height(window),
      fn.line('w0', window), cursor[1], cursor[2],
    }, ' ')
    local former = found.windows[window]
    if marked.windows[window] or not former or former.place ~= place then
      local now = leaf(window, position)
      isChanged = isChanged or not former or not vim.deep_equal(now, former.leaf)
      found.windows[window] = { place = place, leaf = now }
    end
  end
  local form = {
    layout = fn.winlayout(position),
    selected = api.nvim_tabpage_get_win(tab),
    directory = directory('tab' .. number, fn.haslocaldir(-1, position) == 1 and fn.getcwd(-1, position) or nil),
  }
  local former = found.pages[number]
  if former and not isChanged and vim.deep_equal(form, former.form) then return former end
  local state = page(position, number, form)
  return { form = form, saved = state and same(former and former.saved, state) }
end

--- The first of these that fit into so many bytes as JSON.
local function fitting(items, bytesMax)
  local bytes, kept = 0, {}
  for _, item in ipairs(items) do
    bytes = bytes + #fn.json_encode(item) + 1
    if bytes > bytesMax then break end
    kept[#kept + 1] = item
  end
  return kept
end

--- Listed files, if there are too many the ones used last, and the argument list: the state of the object
--- "Editor/Buffers". The line of a buffer that is shown is that of its window.
local function list(bytesMax)
  local infos = vim.tbl_filter(function(info) return file(info.bufnr) ~= nil end, fn.getbufinfo({ buflisted = 1 }))
  table.sort(infos, function(a, b) return a.lastused > b.lastused end)
  local buffers, numbers = {}, {}
  for index, info in ipairs(infos) do
    buffers[index] = { file = file(info.bufnr), line = #info.windows == 0 and math.max(info.lnum, 1) or nil }
    numbers[buffers[index]] = info.bufnr
  end
  local all = vim.tbl_filter(function(name) return name ~= '' end, found.arguments)
  local arguments = fitting(all, bytesMax / 2)
  local kept = fitting(buffers, bytesMax - #fn.json_encode(arguments) - 32)
  local left = #buffers - #kept + #found.arguments - #arguments
  local words = ' names are left out, of the files used longest ago and of arguments'
  note('Editor/Buffers', left > 0 and left .. words or nil)
  table.sort(kept, function(a, b) return numbers[a] < numbers[b] end)
  return { buffers = kept, arguments = arguments }
end

--- The number of a tab page, which it is given if it has none.
function M.number(tab, number)
  local done, own = pcall(api.nvim_tabpage_get_var, tab, NUMBER)
  if done then return own end
  number = number or nextNumber
  while vim.tbl_contains(kept.withheld, number) do number = number + 1 end
  api.nvim_tabpage_set_var(tab, NUMBER, number)
  nextNumber = math.max(nextNumber, number + 1)
  return number
end

--- By path the states of all objects, `state` and `text`: where nothing has changed the very ones of the call before.
function M.states(bytesMax)
  local arguments = {}
  for index, name in ipairs(fn.argv(-1, -1)) do arguments[index] = M.path(name) or '' end
  if not vim.deep_equal(arguments, found.arguments) then
    -- A window knows where in the list it is.
    found.arguments, found.windows, marked.all, marked.list = arguments, {}, true, true
  end
  local current = api.nvim_get_current_tabpage()
  local tabs = { [current] = true }
  for window in pairs(marked.windows) do
    if api.nvim_win_is_valid(window) then tabs[api.nvim_win_get_tabpage(window)] = true end
  end
  local states, pages, numbers, selected = {}, {}, {}, 1
  for _, tab in ipairs(api.nvim_list_tabpages()) do
    local number = M.number(tab)
    local isMarked = marked.all or tabs[tab] or not found.pages[number]
    local saved = isMarked and look(tab, number) or found.pages[number]
    pages[number] = saved
    if saved.saved then
      states['Editor/Tab-' .. number] = saved.saved
      numbers[#numbers + 1] = number
      if tab == current then selected = #numbers end
    end
  end
  if marked.all then
    for window in pairs(found.windows) do
      if not api.nvim_win_is_valid(window) then found.windows[window] = nil end
    end
  end
  found.pages = pages
  for path in pairs(notes) do
    if not states[path] and path ~= 'Editor/Buffers' then notes[path] = nil end
  end
  found.editor = same(found.editor, {
    directory = directory('', fn.getcwd(-1, -1)),
    columns = vim.o.columns,
    lines = vim.o.lines,
    tab = selected,
    tabs = vim.list_extend(numbers, kept.withheld),
  })
  if marked.list then found.list = same(found.list, list(bytesMax)) end
  marked = { windows = {} }
  states['Editor'], states['Editor/Buffers'] = found.editor, found.list
  return states
end

--- By path, what of it is left out, in words.
function M.notes() return notes end

--- The position of the tab page with a number.
function M.position(number)
  for position, tab in ipairs(api.nvim_list_tabpages()) do
    if M.number(tab) == number then return position end
  end
  return 0
end

return M
