-- SPDX-License-Identifier: Apache-2.0
-- The editor's session with the broker: what is saved, when, and what happens at the end.
local Connection = require('restoration.connection')
local layout = require('restoration.layout')
local restoring = require('restoration.restoring')
local M = {}
local api, fn = vim.api, vim.fn

-- Bytes of states in one answer: they stay far below what a frame may have, also counted as values.
local ANSWER_BYTES = 130000
-- Milliseconds: from a change to its report; between attempts to connect; for the goodbye.
local QUIET, RETRY_FIRST, RETRY_LAST, GOODBYE = 400, 250, 10000, 300

-- phase: 'idle', 'connecting', 'restoring', 'kept', 'over'
-- registered, registering: paths of registered objects, and of those for which the answer is due.
-- known, asked, refused: by path, the state the broker has, whether it was told that there is a newer one, and why it
-- refused one.
-- isWithheld: whether the broker withholds the order of tab pages or the list of buffers.
local session = {
  phase = 'idle', retry = RETRY_FIRST, stateBytesMax = 262144, registered = {}, registering = {}, known = {},
  asked = {}, refused = {}, told = {},
}

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

--- Tells the user something once.
local function tell(text)
  if session.told[text] then return end
  session.told[text] = true
  -- A longer message would ask for a key.
  api.nvim_echo({ { fn.printf('%.*S', vim.o.columns - 15, 'restoration: ' .. text), 'WarningMsg' } }, true, {})
end

local function announce(pattern)
  pcall(api.nvim_exec_autocmds, 'User', { pattern = pattern, modeline = false })
end

local function object(path) return vim.split(path, '/') end

--- By path the states of all objects, less a margin for what is around a list.
local function states() return layout.states(session.stateBytesMax - 256) end

-- MARK: What is not saved

local function title(path)
  local number = path:match('%d+$')
  if number then return 'tab page ' .. layout.position(tonumber(number)) end
  return path == 'Editor' and 'order of tab pages' or 'list of buffers'
end

--- Tells the user once that something is not saved as it is, and again after everything was.
local function tellUnsaved()
  local text = 'not all is saved: see :RestorationStatus'
  if next(session.refused) or next(layout.notes()) then return tell(text) end
  session.told[text] = nil
end

-- MARK: Changes

local changed

--- How an object is registered.
local function description(path, isFresh)
  local parent = object(path)
  local name = table.remove(parent)
  if #parent == 0 then
    return { restorationIdentifier = name, kind = 'viewController', objectClass = 'NeovimEditor' }
  end
  local class = name == 'Buffers' and 'NeovimBuffers' or 'NeovimTabPage'
  return { restorationIdentifier = name, restorationParent = parent, objectClass = class, fresh = isFresh }
end

local function invalidate(path)
  session.asked[path] = true
  session.connection:notify('invalidateRestorableState', { object = object(path) })
end

--- A tab page was opened: nothing that was saved under its number is its own.
local function registerPage(path)
  session.registering[path] = true
  session.connection:request('registerObjectForStateRestoration', description(path, true), function(failure)
    session.registering[path] = nil
    if failure then
      -- Tried again with the next change.
      session.refused[path] = 'is not saved: ' .. failure.message
      return tellUnsaved()
    end
    session.registered[path] = true
    invalidate(path)
    -- It may have been closed meanwhile.
    changed()
  end)
end

--- Tab pages were closed.
local function unregisterClosed(now)
  for path in pairs(session.registered) do
    if not now[path] then
      session.registered[path], session.known[path], session.asked[path], session.refused[path] = nil, nil, nil, nil
      session.connection:request('unregisterObject', { object = object(path) })
    end
  end
end

local function tellChanges()
  if session.phase ~= 'kept' or not session.connection or session.connection.closed then return end
  local now = states()
  unregisterClosed(now)
  for path, saved in pairs(now) do
    if not session.registered[path] then
      if not session.registering[path] then registerPage(path) end
    elseif not session.asked[path] and session.known[path] ~= saved then
      invalidate(path)
    end
  end
  tellUnsaved()
end

--- Something may have changed. Checked once within QUIET milliseconds.
function changed()
  if session.timer then return end
  session.timer = vim.defer_fn(function()
    session.timer = nil
    local done, fault = pcall(tellChanges)
    if not done then tell(fault) end
  end, QUIET)
end

local function watch()
  if session.group then return end
  session.group = api.nvim_create_augroup('RestorationWatch', {})
  for subject, events in pairs({
    window = {
      'CursorMoved', 'CursorMovedI', 'CursorHold', 'WinEnter', 'WinLeave', 'WinNew', 'WinScrolled', 'VimResized',
      'TabEnter',
    },
    buffer = { 'TextChanged', 'TextChangedI', 'BufWritePost' },
    list = {
      'BufAdd', 'BufDelete', 'BufEnter', 'BufFilePost', 'BufWinEnter', 'BufWinLeave', 'DirChanged', 'OptionSet',
    },
    all = { 'WinClosed', 'TabClosed' },
  }) do
    api.nvim_create_autocmd(events, {
      group = session.group,
      callback = function(event)
        layout.mark(subject, event.buf)
        changed()
      end,
    })
  end
end

--- The broker has refused a state.
local function refused(params)
  local path = type(params.path) == 'table' and table.concat(params.path, '/') or ''
  if not session.registered[path] then return end
  local fault = params.error
  -- What may be stored another time is told again; at once, if this editor was only busy for too long.
  if fault.kind ~= 'limitExceeded' then session.known[path] = nil end
  if fault.kind == 'timedOut' then return changed() end
  local advice = '. It is tried again with the next change.'
  if fault.limit then
    local text = ': %s is %d, this has %d. Close some of it, or raise the limit.'
    advice = text:format(fault.limit, fault.max, fault.value)
  end
  session.refused[path] = 'stays saved as it was, for ' .. fault.kind .. advice
  tellUnsaved()
end

-- MARK: The broker's calls

local function call(method, params)
  if method == 'encodeFailed' then return refused(params) end
  if method ~= 'encodeRestorableStateWithCoder' then error('not served: ' .. method) end
  local now, answers, bytes = states(), {}, 0
  for index, each in ipairs(params.objects) do
    local path = table.concat(each.path, '/')
    local saved, answer, isRefused = now[path], { object = each.object }, session.refused[path]
    if not saved or saved == session.known[path] and not isRefused then
      answer.unchanged = true
    elseif bytes > ANSWER_BYTES then
      answer.later = true
    else
      answer.state = saved.state
      bytes = bytes + #saved.text
      -- It stays refused until another state is stored.
      if params.round == 0 or not isRefused then session.known[path], session.refused[path] = saved, nil end
    end
    if not answer.later then session.asked[path] = nil end
    answers[index] = answer
  end
  return { states = answers }
end

-- MARK: The beginning

local initialize

local function kept()
  if session.phase == 'connecting' then restoring.setAside() end
  session.phase = 'kept'
  watch()
  changed()
  announce('RestorationReady')
end

--- Leaves this instance to the other editor, and continues in an instance of its own.
local function leave()
  session.token, session.application, session.registered = nil, nil, {}
  session.instance = os.date('!%Y%m%dT%H%M%S-') .. fn.getpid()
  session.connection:request('goodbye', { reason = 'restart' }, function() initialize() end)
end

--- Restores the layout when the user is not busy.
local function restoreWhenQuiet(connection, saved)
  if connection ~= session.connection or connection.closed then return end
  if not restoring.isPristine() then return leave() end
  if api.nvim_get_mode().mode ~= 'n' then
    return vim.defer_fn(function() restoreWhenQuiet(connection, saved) end, 50)
  end
  restoring.setAside()
  local started = fn.getcwd()
  local texts = restoring.restore(saved)
  -- There the names are that the user types next. Without a line for messages each of them asks for a key.
  if fn.getcwd() ~= started and not vim.o.autochdir and vim.o.cmdheight > 0 then
    local directory = fn.fnamemodify(fn.getcwd(), ':~')
    if fn.strdisplaywidth(directory) > vim.o.columns - 60 then directory = fn.pathshorten(directory) end
    texts[#texts + 1] = directory .. ' is the working directory again'
  end
  -- Two messages would ask for a key.
  if #texts > 0 then tell(table.concat(texts, '; ')) end
  connection:request('completeStateRestoration', vim.empty_dict())
  announce('RestorationRestored')
  kept()
end

local function failed(failure)
  -- Another editor has taken this instance over meanwhile.
  if failure.data and failure.data.kind == 'duplicatePath' then return leave() end
  session.phase = 'over'
  tell(failure.message)
end

--- Registers and decodes objects; `callback(failure, results)` with results by path when all are answered.
local function claim(paths, callback)
  local left, failure, results = 2 * #paths, nil, {}
  local function answered(fault)
    failure, left = failure or fault, left - 1
    if left == 0 then callback(failure, results) end
  end
  for _, path in ipairs(paths) do
    session.connection:request('registerObjectForStateRestoration', description(path), answered)
    session.connection:request('decodeRestorableState', { object = object(path) }, function(fault, result)
      results[path] = result
      answered(fault)
    end)
  end
  if left == 0 then callback(nil, {}) end
end

--- The states of tab pages have come. What the broker withholds stays where it is.
local function decoded(connection, saved, numbers, results)
  for _, number in ipairs(numbers) do
    local path = 'Editor/Tab-' .. number
    local result = results[path]
    if result.status == 'quarantined' then
      table.insert(saved.withheld, number)
    else
      session.registered[path] = true
      if result.status == 'available' then table.insert(saved.pages, { number = number, state = result.state }) end
    end
  end
  restoreWhenQuiet(connection, saved)
end

--- Claims the objects, and fetches what is saved of them: first of the editor, then of the tab pages that it names.
local function register()
  local connection, paths = session.connection, { 'Editor', 'Editor/Buffers' }
  for path in pairs(session.registered) do
    if path:match('Tab%-') then paths[#paths + 1] = path end
  end
  session.registered = {}
  claim(paths, function(failure, results)
    if failure then return failed(failure) end
    for _, path in ipairs(paths) do session.registered[path] = true end
    local editor, buffers = results['Editor'], results['Editor/Buffers']
    session.isWithheld = editor.status == 'quarantined' or buffers.status == 'quarantined'
    if session.isWithheld then tell('what was saved is withheld after crashes: see :RestorationStatus') end
    if session.phase ~= 'connecting' or editor.status ~= 'available' then
      if editor.status == 'unreadable' then tell('saved windows are unreadable') end
      connection:request('completeStateRestoration', vim.empty_dict())
      return kept()
    end
    session.phase = 'restoring'
    local saved = { editor = editor.state, pages = {}, withheld = {}, buffers = {} }
    if buffers.status == 'available' then saved.buffers = buffers.state end
    local numbers = restoring.numbers(editor.state)
    claim(vim.tbl_map(function(number) return 'Editor/Tab-' .. number end, numbers), function(fault, pages)
      if fault then return failed(fault) end
      decoded(connection, saved, numbers, pages)
    end)
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
  if not session.application then
    params.instance, params.affinity = session.instance or 'auto', session.place
  end
  session.connection:request('initialize', params, function(failure, result)
    if failure then
      session.phase = 'over'
      return tell(failure.message)
    end
    local isResumed = session.token == result.session
    session.token = result.session
    session.application = result.application
    session.retry, session.stateBytesMax = RETRY_FIRST, result.limits.stateBytesMax
    session.registering, session.known, session.asked, session.refused = {}, {}, {}, {}
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
    local now = states()
    unregisterClosed(now)
    for path, saved in pairs(now) do
      if session.known[path] ~= saved then
        connection:notify('encodeRestorableState', { object = object(path), state = saved.state })
      end
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
  -- The directory that it was started in.
  session.place = layout.path(fn.getcwd())
  if not restoring.isPristine() then session.instance = os.date('!%Y%m%dT%H%M%S-') .. fn.getpid() end
  api.nvim_create_autocmd('VimLeavePre', { callback = function() pcall(goodbye) end })
  api.nvim_create_autocmd('CmdlineLeave', {
    pattern = ':',
    callback = function()
      restoring.commanded()
      -- Nothing declines this command: whenever it has been given, the end follows.
      session.isCquit = not vim.v.event.abort and fn.getcmdline():match('^[: ]*%d*cqu?i?t?!?%s*$') ~= nil
    end,
  })
  connect()
end

function M.status(cause)
  local isConnected = session.connection and not session.connection.closed
  if session.phase == 'idle' then return 'Not kept: Neovim was started ' .. cause .. '; use :RestorationStart.' end
  if session.phase == 'over' then return 'Not kept: see :messages.' end
  if not isConnected then return 'Not kept: no broker at ' .. (socket() or '?') end
  if not session.application then return 'Not kept yet: the broker has not answered.' end
  local lines = {}
  for path, text in pairs(vim.tbl_extend('force', layout.notes(), session.refused)) do
    lines[#lines + 1] = title(path) .. ': ' .. text
  end
  table.sort(lines)
  vim.list_extend(lines, restoring.unsaved())
  if session.isWithheld or #layout.kept.withheld > 0 then
    local text = 'withheld after crashes; to release it: restorationctl quarantine release '
    lines[#lines + 1] = text .. session.application
  end
  local kept = 'Kept as ' .. session.application .. (#lines == 0 and '.' or ', but:')
  return table.concat({ kept, unpack(lines) }, '\n')
end

return M
