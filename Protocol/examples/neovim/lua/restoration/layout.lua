-- SPDX-License-Identifier: Apache-2.0
-- The layout of the editor as plain data: saving and restoring.
local M = {}
local api, fn = vim.api, vim.fn

--- Options of a window and its buffer that are kept: the greatest number, or all values. None of them is evaluated,
--- names a file or has anything run, and none may be added that does.
local OPTIONS = {
  autoindent = 1, conceallevel = 3, cursorcolumn = 1, cursorline = 1, expandtab = 1, foldenable = 1, foldlevel = 999,
  foldmethod = { 'manual', 'indent', 'marker', 'syntax' }, linebreak = 1, list = 1, number = 1, relativenumber = 1,
  shiftwidth = 99, softtabstop = 99, tabstop = 99, textwidth = 9999, wrap = 1,
}
--- Folds of all windows: the layout stays small.
local FOLDS = 4000

--- A name that is not UTF-8 cannot be written as JSON.
local function sayable(name) return pcall(fn.json_encode, name) and name or nil end

--- Nil for remote files, and if there is no name.
local function path(name)
  if name == '' or name:match('^%a[%w+.-]+://') then return nil end
  return sayable(fn.fnamemodify(name, ':p'))
end

--- The file a buffer shows; nil for help, terminals, quickfix lists, remote files, and buffers without a name.
local function file(buffer)
  return vim.bo[buffer].buftype == '' and path(api.nvim_buf_get_name(buffer)) or nil
end

local function isNumber(value, least, most)
  return type(value) == 'number' and value % 1 == 0 and value >= least and value <= most
end

--- Whether an option is kept, and may have this value.
local function allows(name, value)
  local values = OPTIONS[name]
  if type(values) == 'table' then return vim.tbl_contains(values, value) end
  return values ~= nil and isNumber(value, 0, values)
end

-- MARK: Saving

--- Adds the folds of a window. Neovim lists them only in a view, a script, of which the numbers are taken: `folds` are
--- manual ones as {first line, last line}, inner ones first; `foldsOpen` has {line, whether it is open} of those that
--- are not as 'foldlevel' has it, in the order in which they are to be opened and closed.
local function addFolds(leaf, window, room)
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
  room.folds = room.folds - #folds - #open
  if room.folds >= 0 then leaf.folds, leaf.foldsOpen = folds, open end
end

--- Adds what is kept of a window with a file: its options, its folds, and where in the argument list it is.
local function addView(leaf, window, room)
  local tab = fn.win_id2tabwin(window)[1]
  leaf.options = {}
  for name in pairs(OPTIONS) do
    local value = fn.gettabwinvar(tab, window, '&' .. name)
    if allows(name, value) then leaf.options[name] = value end
  end
  if leaf.options.foldmethod then addFolds(leaf, window, room) end
  if fn.argc(-1) > 0 and fn.arglistid(window, tab) == 0 then
    local index = api.nvim_win_call(window, fn.argidx)
    if path(fn.argv(index, -1)) == leaf.file then leaf.argument = index + 1 end
  end
end

local function leaf(window, room)
  local buffer = api.nvim_win_get_buf(window)
  if vim.bo[buffer].buftype ~= '' then return nil end
  local cursor = api.nvim_win_get_cursor(window)
  local result = {
    file = file(buffer),
    line = cursor[1],
    column = cursor[2] + 1,
    top = fn.getwininfo(window)[1].topline,
    width = api.nvim_win_get_width(window),
    height = api.nvim_win_get_height(window),
  }
  -- A comparison changes options of its windows.
  if result.file and not vim.wo[window].diff then addView(result, window, room) end
  return result
end

--- A node of winlayout() in our words. Windows that could not be restored are left out.
local function node(tree, selected, room)
  if tree[1] == 'leaf' then
    local result = leaf(tree[2], room)
    if result and tree[2] == selected then result.selected = true end
    return result
  end
  local parts = {}
  for _, child in ipairs(tree[2]) do parts[#parts + 1] = node(child, selected, room) end
  if #parts < 2 then return parts[1] end
  return { split = tree[1] == 'row' and 'row' or 'column', parts = parts }
end

--- Tab pages with their windows: the state of the object "Editor".
function M.windows()
  local tabs, current, room = {}, 1, { folds = FOLDS }
  for number, tab in ipairs(api.nvim_list_tabpages()) do
    local windows = node(fn.winlayout(number), api.nvim_tabpage_get_win(tab), room)
    if windows then
      tabs[#tabs + 1] = { windows = windows }
      if tab == api.nvim_get_current_tabpage() then current = #tabs end
    end
  end
  local directory = fn.getcwd(-1, -1)
  return { directory = sayable(directory), columns = vim.o.columns, lines = vim.o.lines, tab = current, tabs = tabs }
end

--- The first of these that fit into so many bytes.
local function fitting(items, name, bytesMax)
  local bytes = 0
  return vim.tbl_filter(function(item)
    -- Room for the longest escaped form of a name, and its punctuation.
    bytes = bytes + 6 * #name(item) + 64
    return bytes <= bytesMax
  end, items)
end

--- Listed files, if there are too many the ones used last, and the argument list: the state of the object
--- "Editor/Buffers".
function M.buffers(bytesMax)
  local infos = vim.tbl_filter(function(info) return file(info.bufnr) ~= nil end, fn.getbufinfo({ buflisted = 1 }))
  table.sort(infos, function(a, b) return a.lastused > b.lastused end)
  infos = fitting(infos, function(info) return info.name end, bytesMax / (fn.argc(-1) > 0 and 2 or 1))
  table.sort(infos, function(a, b) return a.bufnr < b.bufnr end)
  local buffers = {}
  for index, info in ipairs(infos) do
    local window = info.windows[1]
    local line = window and api.nvim_win_get_cursor(window)[1] or math.max(info.lnum, 1)
    buffers[index] = { file = info.name, line = line, modified = info.changed == 1 or nil }
  end
  local arguments = {}
  for _, name in ipairs(fn.argv(-1, -1)) do arguments[#arguments + 1] = path(name) end
  return { buffers = buffers, arguments = fitting(arguments, function(name) return name end, bytesMax / 2) }
end

-- MARK: Restoring

--- Nothing has been opened yet, so restoring disturbs nothing.
function M.isPristine()
  local windows = vim.tbl_filter(function(window)
    return api.nvim_win_get_config(window).relative == ''
  end, api.nvim_list_wins())
  if #windows > 1 then return false end
  for _, info in ipairs(fn.getbufinfo({ buflisted = 1 })) do
    if info.name ~= '' or info.changed == 1 then return false end
  end
  return true
end

--- Splits a window into a node's parts; adds {window, leaf, beside, below} for each leaf, which say in what directions
--- it has neighbours to share the space with.
local function build(node, window, leaves, beside, below)
  if not node.split then
    leaves[#leaves + 1] = { window = window, leaf = node, beside = beside, below = below }
    return
  end
  local windows = { window }
  for _ = 2, #node.parts do
    api.nvim_set_current_win(windows[#windows])
    -- If there is no room for all windows, the first ones are shown.
    if not pcall(vim.cmd, node.split == 'row' and 'rightbelow vsplit' or 'rightbelow split') then break end
    windows[#windows + 1] = api.nvim_get_current_win()
  end
  for index, part in ipairs(windows) do
    build(node.parts[index], part, leaves, beside or node.split == 'row', below or node.split == 'column')
  end
end

local function resize(leaves, windows)
  for _, each in ipairs(leaves) do
    local width = math.floor(each.leaf.width * vim.o.columns / windows.columns + 0.5)
    local height = math.floor(each.leaf.height * vim.o.lines / windows.lines + 0.5)
    if each.beside then api.nvim_win_set_width(each.window, width) end
    if each.below then api.nvim_win_set_height(each.window, height) end
  end
end

--- Whether a saved name is that of a file here: others, such as term://…, are read by plugins, which run programs.
--- A pipe would be waited for, and of a name with a new line the second would be a command.
local function isLocal(name)
  if type(name) ~= 'string' or name:sub(1, 1) ~= '/' or name:find('%c') then return false end
  return vim.tbl_contains({ '', 'file', 'dir' }, fn.getftype(fn.resolve(name)))
end

--- Runs a command for each pair of numbers in a list.
local function forPairs(list, command)
  for _, pair in ipairs(list or {}) do
    if type(pair) == 'table' and isNumber(pair[1], 1, 1e9) and isNumber(pair[2], 0, 1e9) then
      vim.cmd(command(pair[1], pair[2]))
    end
  end
end

--- Makes the folds of the current window. Only manual ones: with 'foldmethod' "marker" that would change the text.
local function fold(leaf)
  if vim.wo.foldmethod == 'manual' then
    vim.cmd('silent! normal! zE')
    forPairs(leaf.folds, function(first, last) return ('silent! %d,%dfold'):format(first, last) end)
  end
  -- All are open or closed as it says, before some differ.
  vim.cmd('let &l:foldlevel = &l:foldlevel')
  forPairs(leaf.foldsOpen, function(line, isOpen)
    return ('silent! %d%s'):format(line, isOpen == 1 and 'foldopen' or 'foldclose')
  end)
end

local function fill(window, leaf)
  api.nvim_set_current_win(window)
  if isLocal(leaf.file) then
    local argument = leaf.argument
    local isArgument = isNumber(argument, 1, fn.argc(-1)) and path(fn.argv(argument - 1, -1)) == leaf.file
    local show = isArgument and ('%dargument'):format(argument) or ('buffer %d'):format(fn.bufadd(leaf.file))
    vim.cmd('silent! keepalt keepjumps ' .. show)
    vim.bo.buflisted = true
    for name, value in pairs(leaf.options or {}) do
      if allows(name, value) then pcall(fn.setwinvar, 0, '&' .. name, value) end
    end
    if leaf.folds then fold(leaf) end
  else
    vim.cmd('silent! enew')
  end
  pcall(fn.winrestview, { lnum = leaf.line, col = leaf.column - 1, topline = leaf.top })
end

--- Decides about a swap file, which a killed editor leaves behind, instead of asking.
local function answerSwapFile(unsaved)
  local swap = fn.swapinfo(vim.v.swapname)
  if swap.pid and swap.pid > 0 and vim.loop.kill(swap.pid, 0) == 0 and swap.pid ~= fn.getpid() then
    vim.v.swapchoice = 'o'
  elseif swap.dirty == 0 then
    vim.v.swapchoice = 'd'
  else
    -- Kept for :recover.
    vim.v.swapchoice = 'e'
    unsaved[#unsaved + 1] = vim.v.swapname
  end
end

--- Removes the blank buffer that a window began with.
local function forget(buffer)
  local isBlank = api.nvim_buf_is_valid(buffer) and api.nvim_buf_get_name(buffer) == '' and not vim.bo[buffer].modified
  if isBlank and #fn.win_findbuf(buffer) == 0 then pcall(api.nvim_buf_delete, buffer, {}) end
end

local function restoreTab(tab, windows)
  local blank, leaves = api.nvim_get_current_buf(), {}
  build(tab.windows, api.nvim_get_current_win(), leaves)
  -- Twice, because each window takes space from its neighbours.
  resize(leaves, windows)
  resize(leaves, windows)
  local selected = leaves[1].window
  for _, each in ipairs(leaves) do
    fill(each.window, each.leaf)
    if each.leaf.selected then selected = each.window end
  end
  api.nvim_set_current_win(selected)
  forget(blank)
end

local function restore(windows, buffers)
  if windows.directory and fn.isdirectory(windows.directory) == 1 then
    pcall(api.nvim_set_current_dir, windows.directory)
  end
  for _, buffer in ipairs(buffers.buffers or {}) do
    if isLocal(buffer.file) then
      vim.cmd(('silent! badd +%d %s'):format(buffer.line, fn.fnameescape(buffer.file)))
    end
  end
  for _, name in ipairs(buffers.arguments or {}) do
    if isLocal(name) then vim.cmd('silent! $argadd ' .. fn.fnameescape(name)) end
  end
  local tabs = windows.tabs or {}
  -- All tab pages first: the line of tabs takes its space from the windows.
  for _ = 2, #tabs do vim.cmd('silent $tabnew') end
  local pages = api.nvim_list_tabpages()
  for index, tab in ipairs(tabs) do
    api.nvim_set_current_tabpage(pages[index])
    restoreTab(tab, windows)
  end
  if pages[windows.tab] then api.nvim_set_current_tabpage(pages[windows.tab]) end
end

--- Puts windows and buffers back; swap files that hold unsaved changes, and what went wrong.
function M.restore(windows, buffers)
  local unsaved = {}
  local swap = api.nvim_create_autocmd('SwapExists', { callback = function() answerSwapFile(unsaved) end })
  local equalalways, hidden = vim.o.equalalways, vim.o.hidden
  -- Room for every split, and no question about the blank buffer.
  vim.o.equalalways, vim.o.hidden = true, true
  local done, fault = pcall(restore, windows, buffers)
  vim.o.equalalways, vim.o.hidden = equalalways, hidden
  api.nvim_del_autocmd(swap)
  return unsaved, not done and fault or nil
end

return M
