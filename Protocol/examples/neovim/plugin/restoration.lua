-- SPDX-License-Identifier: Apache-2.0
if vim.g.loaded_restoration then return end
vim.g.loaded_restoration = true

local group = vim.api.nvim_create_augroup('Restoration', {})
local stdin = false
-- How Neovim was started, if it is not kept from its start.
local cause = 'before this plugin was loaded'
vim.api.nvim_create_autocmd('StdinReadPre', { group = group, callback = function() stdin = true end })
vim.api.nvim_create_autocmd('VimEnter', {
  group = group,
  nested = true,
  callback = function()
    -- Nothing is restored if the user names files, pipes text in or loads a session file, or if there is no screen.
    cause = vim.fn.argc() > 0 and 'with files' or stdin and 'with text from a pipe'
      or vim.v.this_session ~= '' and 'with a session file' or #vim.api.nvim_list_uis() == 0 and 'without a screen'
    if not cause then require('restoration').start() end
  end,
})
vim.api.nvim_create_user_command('RestorationStart', function()
  require('restoration.restoring').commanded()
  require('restoration').start()
end, {
  bar = true,
  desc = 'Keep the layout of this editor from now on, although it was started with files',
})
vim.api.nvim_create_user_command('RestorationStatus', function() print(require('restoration').status(cause)) end, {
  bar = true,
  desc = 'Whether the layout of this editor is kept',
})
