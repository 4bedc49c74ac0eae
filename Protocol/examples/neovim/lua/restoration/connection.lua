-- SPDX-License-Identifier: Apache-2.0
-- JSON-RPC 2.0 over a Unix socket, one JSON text a line. Knows nothing of restoration.
local Connection = {}
Connection.__index = Connection

--- Connects without waiting. `on.open()`, `on.close()` and `on.call(method, params)`, whose value is the answer to a
--- request, run in the main loop. `on.close` is called once, also if no broker listens.
function Connection.new(path, on)
  local self = setmetatable({ on = on, pipe = vim.loop.new_pipe(false), waiting = {}, id = 0, rest = '' }, Connection)
  self.pipe:connect(path, vim.schedule_wrap(function(failure)
    if failure then return self:close() end
    if self.closed then return end
    -- One chunk may hold many lines, or a part of one.
    self.pipe:read_start(vim.schedule_wrap(function(fault, chunk)
      if fault or not chunk then return self:close() end
      self:read(chunk)
    end))
    on.open()
  end))
  return self
end

function Connection:read(chunk)
  local text, first = self.rest .. chunk, 1
  -- Not a pattern: one is tried at each byte of a line that has not ended yet.
  local last = text:find('\n', first, true)
  while last do
    -- Not vim.json, which writes integers above 10^14 in another form.
    local isJSON, message = pcall(vim.fn.json_decode, text:sub(first, last - 1))
    if isJSON and type(message) == 'table' then self:receive(message) end
    first = last + 1
    last = text:find('\n', first, true)
  end
  self.rest = text:sub(first)
end

function Connection:receive(message)
  if message.method then
    local done, result = pcall(self.on.call, message.method, message.params)
    if message.id == nil then return end
    local answer = { jsonrpc = '2.0', id = message.id }
    if done then
      answer.result = result
    else
      answer.error = { code = -32603, message = tostring(result) }
    end
    self:send(answer)
  elseif message.id ~= nil and message.id ~= vim.NIL then
    local callback = self.waiting[message.id]
    self.waiting[message.id] = nil
    if callback then callback(message.error, message.result) end
  end
end

--- Calls a method; `callback(error, result)` unless the connection is lost before.
function Connection:request(method, params, callback)
  self.id = self.id + 1
  self.waiting[self.id] = callback or function() end
  self:send({ jsonrpc = '2.0', id = self.id, method = method, params = params })
end

function Connection:notify(method, params)
  self:send({ jsonrpc = '2.0', method = method, params = params })
end

function Connection:send(message)
  if not self.closed then self.pipe:write(vim.fn.json_encode(message) .. '\n') end
end

function Connection:close()
  if self.closed then return end
  self.closed = true
  self.pipe:close()
  self.on.close()
end

return Connection
