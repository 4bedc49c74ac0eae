-- SPDX-License-Identifier: Apache-2.0
-- The editor's session with the broker: what is saved, when, and what happens at the end.
local Connection = require('restoration.connection')
local layout = require('restoration.layout')
local M = {}
local api, fn = vim.api, vim.fn

local EDITOR, BUFFERS = { 'Editor' }, { 'Editor', 'Buffers' }
-- The broker's limit of a state (stateBytesMax), less a margin.
local STATE_BYTES = 250000
-- Milliseconds: from a change to its report; between attempts to connect; for the goodbye.
local QUIET, RETRY_FIRST, RETRY_LAST, GOODBYE = 400, 250, 10000, 300

-- phase: 'idle', 'connecting', 'restoring', 'kept', 'over'
-- known, asked: by path, the text the broker has, and whether it was told that there is a newer one.
local session = { phase = 'idle', retry = RETRY_FIRST, known = {}, asked = {} }

local function option(name, default)
  local value = (vim.g.restoration or {})[name]
  if value == nil then return default end
  return value
end

local function socket()
  local path = option('socket') or vim.env.RESTORATIOND_SOCKET
  if path and path ~= '' then return path end
  local directory = vim.env.XDG_RUNTIME_DIR
  return directory and directory ~= '' and directory .. '/restorationd/broker.sock' or nil
end

local function tell(text)
  if session.told then return end
  session.told = true
  -- A longer message would ask for a key.
  api.nvim_echo({ { ('restoration: ' .. text):sub(1, vim.o.columns - 15), 'WarningMsg' } }, true, {})
end

local function announce(pattern)
  pcall(api.nvim_exec_autocmds, 'User', { pattern = pattern, modeline = false })
end

--- Both states by path, and as text to compare.
local function states()
  return { Editor = layout.windows(), ['Editor/Buffers'] = layout.buffers(STATE_BYTES) }
end

-- MARK: Changes

local function invalidateChanged()
  if session.phase ~= 'kept' or not session.connection or session.connection.closed then return end
  for path, state in pairs(states()) do
    if not session.asked[path] and session.known[path] ~= fn.json_encode(state) then
      session.asked[path] = true
      session.connection:notify('invalidateRestorableState', { object = vim.split(path, '/') })
    end
  end
end

--- Something may have changed. Checked once within QUIET milliseconds.
local function changed()
  if session.timer then return end
  session.timer = vim.defer_fn(function()
    session.timer = nil
    local done, fault = pcall(invalidateChanged)
    if not done then tell(fault) end
  end, QUIET)
end

local function watch()
  if session.group then return end
  session.group = api.nvim_create_augroup('RestorationWatch', {})
  api.nvim_create_autocmd({
    'CursorMoved', 'CursorMovedI', 'BufAdd', 'BufDelete', 'BufEnter', 'BufFilePost', 'BufModifiedSet', 'BufWinEnter',
    'WinEnter', 'WinNew', 'WinClosed', 'WinScrolled', 'VimResized', 'TabEnter', 'TabClosed', 'DirChanged', 'OptionSet',
    'CursorHold',
  }, { group = session.group, callback = changed })
end

-- MARK: The broker's calls

local function call(method, params)
  if method ~= 'encodeRestorableStateWithCoder' then error('not served: ' .. method) end
  local now, answers = states(), {}
  for index, object in ipairs(params.objects) do
    local path = table.concat(object.path, '/')
    session.known[path], session.asked[path] = fn.json_encode(now[path]), nil
    answers[index] = { object = object.object, state = now[path] }
  end
  return { states = answers }
end

-- MARK: The beginning

local initialize

local function kept()
  session.phase = 'kept'
  watch()
  changed()
  announce('RestorationReady')
end

--- Leaves this instance to the other editor, and continues in an instance of its own.
local function leave()
  session.token = nil
  session.application = nil
  session.instance = os.date('!%Y%m%dT%H%M%S-') .. fn.getpid()
  session.connection:request('goodbye', { reason = 'restart' }, function() initialize() end)
end

local function restored(windows, buffers)
  local unsaved, fault = layout.restore(windows, buffers)
  if fault then
    tell(fault)
  elseif #unsaved > 0 then
    tell(#unsaved .. ' swap file(s) with unsaved changes; see :help recovery')
  end
  session.connection:request('completeStateRestoration', vim.empty_dict())
  announce('RestorationRestored')
  kept()
end

--- Restores the layout when the user is not busy.
local function restoreWhenQuiet(connection, windows, buffers)
  if connection ~= session.connection or connection.closed then return end
  if not layout.isPristine() then return leave() end
  if api.nvim_get_mode().mode ~= 'n' then
    return vim.defer_fn(function() restoreWhenQuiet(connection, windows, buffers) end, 50)
  end
  restored(windows, buffers)
end

local function register()
  local connection, failed = session.connection, nil
  local function check(failure) failed = failed or failure end
  connection:request('registerObjectForStateRestoration',
    { restorationIdentifier = 'Editor', kind = 'viewController', objectClass = 'NeovimEditor' }, check)
  connection:request('registerObjectForStateRestoration',
    { restorationIdentifier = 'Buffers', restorationParent = EDITOR, objectClass = 'NeovimBuffers' }, check)
  local windows
  connection:request('decodeRestorableState', { object = EDITOR }, function(failure, result)
    check(failure)
    windows = result
  end)
  connection:request('decodeRestorableState', { object = BUFFERS }, function(failure, buffers)
    check(failure)
    if failed then
      -- Another editor has taken this instance over meanwhile.
      if failed.data and failed.data.kind == 'duplicatePath' then return leave() end
      session.phase = 'over'
      return tell(failed.message)
    end
    local isThere = windows.status == 'available' and buffers.status == 'available'
    if isThere and session.phase == 'connecting' then
      session.phase = 'restoring'
      return restoreWhenQuiet(connection, windows.state, buffers.state)
    end
    connection:request('completeStateRestoration', vim.empty_dict())
    kept()
  end)
end

function initialize()
  if session.phase ~= 'kept' then session.phase = 'connecting' end
  local params = {
    application = session.application or option('application', 'io.neovim.Neovim'),
    session = session.token,
    process = 'nvim',
    bundleVersion = tostring(vim.version().major) .. '.' .. vim.version().minor .. '.' .. vim.version().patch,
    serves = { 'encodeRestorableStateWithCoder' },
  }
  if not session.application then params.instance = session.instance or 'auto' end
  session.connection:request('initialize', params, function(failure, result)
    if failure then
      session.phase = 'over'
      return tell(failure.message)
    end
    local isResumed = session.token == result.session
    session.token = result.session
    session.application = result.application
    session.retry, session.known, session.asked = RETRY_FIRST, {}, {}
    if isResumed and session.phase == 'kept' then
      changed()
    else
      register()
    end
  end)
end

local function connect()
  local path = socket()
  if not path or session.phase == 'over' then return end
  session.connection = Connection.new(path, {
    open = function() initialize() end,
    call = call,
    close = function()
      if session.phase == 'over' then return end
      vim.defer_fn(connect, session.retry)
      session.retry = math.min(session.retry * 2, RETRY_LAST)
    end,
  })
end

-- MARK: The end

--- Whether the user quits. Otherwise a signal ends Neovim, or its terminal is gone: then the status is 1, and v:dying
--- may be 0, as it is if Neovim finds the end of its input before the signal comes. :cquit has that status as well.
local function isUsersWord()
  if vim.v.dying > 0 then return false end
  return vim.v.exiting == 0 or session.isCquit
end

local function goodbye()
  local phase, connection = session.phase, session.connection
  session.phase = 'over'
  if not connection or connection.closed or not session.token then return end
  local reason = isUsersWord() and option('on_quit', 'userQuit') or 'logout'
  if phase ~= 'kept' then reason = 'restart' end
  if phase == 'kept' and reason ~= 'userQuit' then
    for path, state in pairs(states()) do
      connection:notify('encodeRestorableState', { object = vim.split(path, '/'), state = state })
    end
  end
  local isDone = false
  connection:request('goodbye', { reason = reason }, function() isDone = true end)
  vim.wait(GOODBYE, function() return isDone or connection.closed end, 5)
end

--- Begins to save the layout; restores an earlier one if nothing has been opened yet.
function M.start()
  if session.phase ~= 'idle' then return end
  session.phase = 'connecting'
  if not layout.isPristine() then session.instance = os.date('!%Y%m%dT%H%M%S-') .. fn.getpid() end
  api.nvim_create_autocmd('VimLeavePre', { callback = function() pcall(goodbye) end })
  api.nvim_create_autocmd('CmdlineLeave', {
    pattern = ':',
    callback = function()
      -- Nothing declines this command: whenever it has been given, the end follows.
      session.isCquit = not vim.v.event.abort and fn.getcmdline():match('^[: ]*%d*cqu?i?t?!?%s*$') ~= nil
    end,
  })
  connect()
end

function M.status()
  local isConnected = session.connection and not session.connection.closed
  if session.phase == 'idle' then return 'Not kept: not started empty on a screen; :RestorationStart begins.' end
  if session.phase == 'over' then return 'Not kept: see :messages.' end
  if not isConnected or not session.application then return 'Not kept: no broker at ' .. (socket() or '?') end
  return 'Kept as ' .. session.application .. '.'
end

return M
