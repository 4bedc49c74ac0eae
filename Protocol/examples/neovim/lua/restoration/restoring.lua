-- SPDX-License-Identifier: Apache-2.0
-- Puts a saved layout back.
local layout = require('restoration.layout')
local M = {}
local api, fn = vim.api, vim.fn

--- Whether a command that the user has typed may have opened what there is. Only then windows without files count.
local isCommanded = false

--- Files and their swap files, which hold unsaved changes.
local unsaved = {}

function M.commanded() isCommanded = true end

--- Windows of a tab page that do not float.
local function windowsOf(tab)
  return vim.tbl_filter(function(window)
    return api.nvim_win_get_config(window).relative == ''
  end, api.nvim_tabpage_list_wins(tab))
end

local function isBlank(buffer) return vim.bo[buffer].buftype == '' and api.nvim_buf_get_name(buffer) == '' end

--- The user has opened nothing yet, so restoring disturbs nothing.
function M.isPristine()
  for _, info in ipairs(fn.getbufinfo({ buflisted = 1 })) do
    local isPlain = vim.bo[info.bufnr].buftype == ''
    if isPlain and (info.changed == 1 or layout.showsFile(info.bufnr)) then return false end
  end
  if not isCommanded then return true end
  return #api.nvim_list_tabpages() == 1 and #windowsOf(0) == 1 and isBlank(api.nvim_win_get_buf(windowsOf(0)[1]))
end

--- The window of this tab page in which the user begins: not one that his settings have opened at its side.
local function mainWindow()
  local windows = windowsOf(0)
  local blank = vim.tbl_filter(function(window) return isBlank(api.nvim_win_get_buf(window)) end, windows)
  local free = vim.tbl_filter(function(window)
    return not vim.wo[window].winfixwidth and not vim.wo[window].winfixheight
  end, windows)
  local best = #blank > 0 and blank or #free > 0 and free or windows
  return vim.tbl_contains(best, api.nvim_get_current_win()) and api.nvim_get_current_win() or best[1]
end

--- Puts aside what the user's settings have opened and shows no file: it is not saved, because they open it again.
function M.setAside()
  if isCommanded then return end
  local main = mainWindow()
  for _, window in ipairs(api.nvim_list_wins()) do
    layout.kept.aside[window] = window ~= main and not layout.showsFile(api.nvim_win_get_buf(window)) or nil
  end
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
    -- If there is no room for all windows, the first ones are shown, and the others stay saved.
    if not pcall(vim.cmd, node.split == 'row' and 'rightbelow vsplit' or 'rightbelow split') then
      leaves.isCrowded = true
      break
    end
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
--- A pipe would be waited for, and of a name with a new line the second would be a command. Of
--- "/directory/ftp://host/file" Neovim would show, and later read, a remote file.
local function isLocal(name)
  if type(name) ~= 'string' or name:sub(1, 1) ~= '/' or name:find('%c') or name:find('://') then return false end
  return vim.tbl_contains({ '', 'file', 'dir' }, fn.getftype(fn.resolve(name)))
end

--- Runs a command for each pair of numbers in a list.
local function forPairs(list, command)
  for _, pair in ipairs(list or {}) do
    if type(pair) == 'table' and layout.isNumber(pair[1], 1, 1e9) and layout.isNumber(pair[2], 0, 1e9) then
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

--- Changes the directory of the editor, a tab page or a window to a saved one. One that is not there stays saved.
local function changeDirectory(command, key, current, saved)
  if not isLocal(saved) then return end
  if fn.isdirectory(saved) == 1 then
    vim.cmd('silent! ' .. command .. ' ' .. fn.fnameescape(saved))
  else
    layout.kept.directories[key] = { saved = saved, instead = current }
  end
end

local function fill(window, leaf)
  api.nvim_set_current_win(window)
  changeDirectory('lcd', window, nil, leaf.directory)
  if isLocal(leaf.file) and fn.isdirectory(leaf.file) == 1 then
    -- Only this has the listing made.
    vim.cmd('silent! keepalt keepjumps edit ' .. fn.fnameescape(leaf.file))
  elseif isLocal(leaf.file) then
    local argument = leaf.argument
    local isArgument = layout.isNumber(argument, 1, fn.argc(-1)) and layout.path(fn.argv(argument - 1, -1)) == leaf.file
    local show = isArgument and ('%dargument'):format(argument) or ('buffer %d'):format(fn.bufadd(leaf.file))
    vim.cmd('silent! keepalt keepjumps ' .. show)
    vim.bo.buflisted = true
    for name, value in pairs(leaf.options or {}) do
      if layout.allows(name, value) then pcall(fn.setwinvar, 0, '&' .. name, value) end
    end
    if leaf.folds then fold(leaf) end
  else
    vim.cmd('silent! enew')
  end
  pcall(fn.winrestview, { lnum = leaf.line, col = leaf.column - 1, topline = leaf.top })
end

--- Decides about a swap file, which a killed editor leaves behind, instead of asking.
local function answerSwapFile()
  local swap = fn.swapinfo(vim.v.swapname)
  if swap.pid and swap.pid > 0 and vim.loop.kill(swap.pid, 0) == 0 and swap.pid ~= fn.getpid() then
    vim.v.swapchoice = 'o'
  elseif swap.dirty == 0 then
    vim.v.swapchoice = 'd'
  else
    -- Kept for :recover.
    vim.v.swapchoice = 'e'
    unsaved[#unsaved + 1] = { file = fn.expand('<afile>:p'), swap = fn.fnamemodify(vim.v.swapname, ':p') }
  end
end

--- A line for each swap file that holds unsaved changes, and is still there.
function M.unsaved()
  local lines = {}
  for _, each in ipairs(unsaved) do
    if fn.filereadable(each.swap) == 1 then
      lines[#lines + 1] = ('%s: unsaved changes are in %s; see :help recovery'):format(each.file, each.swap)
    end
  end
  return lines
end

--- Removes the blank buffer that a window began with.
local function forget(buffer)
  local isBlank = api.nvim_buf_is_valid(buffer) and api.nvim_buf_get_name(buffer) == '' and not vim.bo[buffer].modified
  if isBlank and #fn.win_findbuf(buffer) == 0 then pcall(api.nvim_buf_delete, buffer, {}) end
end

--- Restores a tab page into the current one; whether there was room for all of its windows.
local function restoreTab(number, saved, editor)
  api.nvim_set_current_win(mainWindow())
  changeDirectory('tcd', 'tab' .. number, nil, saved.directory)
  local blank, leaves = api.nvim_get_current_buf(), {}
  build(saved.windows, api.nvim_get_current_win(), leaves)
  -- Twice, because each window takes space from its neighbours.
  resize(leaves, editor)
  resize(leaves, editor)
  local selected = leaves[1].window
  for _, each in ipairs(leaves) do
    fill(each.window, each.leaf)
    if each.leaf.selected then selected = each.window end
  end
  api.nvim_set_current_win(selected)
  forget(blank)
  return not leaves.isCrowded
end

local function restore(editor, pages, buffers, faults)
  for _, buffer in ipairs(buffers.buffers or {}) do
    if isLocal(buffer.file) then
      vim.cmd(('silent! badd +%d %s'):format(buffer.line or 1, fn.fnameescape(buffer.file)))
    end
  end
  for _, name in ipairs(buffers.arguments or {}) do
    if isLocal(name) then vim.cmd('silent! $argadd ' .. fn.fnameescape(name)) end
  end
  -- Only this shortens their names to what the user sees.
  changeDirectory('cd', '', fn.getcwd(-1, -1), editor.directory)
  -- All tab pages first: the line of tabs takes its space from the windows.
  for _ = 2, #pages do vim.cmd('silent $tabnew') end
  local tabs = api.nvim_list_tabpages()
  for index, saved in ipairs(pages) do
    api.nvim_set_current_tabpage(tabs[index])
    layout.number(tabs[index], saved.number)
    local done, result = pcall(restoreTab, saved.number, saved.state, editor)
    if not done then faults[#faults + 1] = result end
    -- What could not be restored stays saved as it is.
    if not done or not result then
      layout.kept.crowded[saved.number] = { state = saved.state, shown = layout.shown(index) }
    end
  end
  if tabs[editor.tab] then api.nvim_set_current_tabpage(tabs[editor.tab]) end
end

local function tabsOf(editor) return type(editor.tabs) == 'table' and editor.tabs or {} end

--- The numbers of the tab pages in the state of "Editor", in their order.
function M.numbers(editor)
  local numbers, seen = {}, {}
  for _, tab in ipairs(tabsOf(editor)) do
    if layout.isNumber(tab, 1, 999999) and not seen[tab] then
      seen[tab], numbers[#numbers + 1] = true, tab
    end
  end
  return numbers
end

--- Puts back what is saved: `editor`, `pages` with `number` and `state`, `withheld` numbers of others, which stay in
--- the order of tab pages, and `buffers`. Returns what to tell the user.
function M.restore(saved)
  layout.kept.withheld = saved.withheld
  local pages, last = vim.list_extend({}, saved.pages), 0
  for _, number in ipairs(M.numbers(saved.editor)) do last = math.max(last, number) end
  for _, tab in ipairs(tabsOf(saved.editor)) do
    -- Earlier versions of this plugin kept tab pages in the state of "Editor".
    if type(tab) == 'table' then
      last = last + 1
      pages[#pages + 1] = { number = last, state = tab }
    end
  end
  local faults = {}
  local swap = api.nvim_create_autocmd('SwapExists', { callback = answerSwapFile })
  local equalalways, hidden = vim.o.equalalways, vim.o.hidden
  -- Room for every split, and no question about the blank buffer.
  vim.o.equalalways, vim.o.hidden = true, true
  local done, fault = pcall(restore, saved.editor, pages, saved.buffers, faults)
  vim.o.equalalways, vim.o.hidden = equalalways, hidden
  api.nvim_del_autocmd(swap)
  local texts = { not done and fault or faults[1] }
  local text = ' tab page(s) withheld after crashes: see :RestorationStatus'
  if #saved.withheld > 0 then texts[#texts + 1] = #saved.withheld .. text end
  -- One file may have several swap files.
  local files = fn.uniq(vim.tbl_map(function(each) return fn.fnamemodify(each.file, ':t') end, unsaved))
  local more = #files > 1 and (' and %d more'):format(#files - 1) or ''
  if #files > 0 then texts[#texts + 1] = 'unsaved: ' .. files[1] .. more .. '; see :help recovery' end
  return texts
end

return M
