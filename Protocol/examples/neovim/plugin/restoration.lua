-- SPDX-License-Identifier: Apache-2.0
if vim.g.loaded_restoration then return end
vim.g.loaded_restoration = true

local group = vim.api.nvim_create_augroup('Restoration', {})
local stdin = false
vim.api.nvim_create_autocmd('StdinReadPre', { group = group, callback = function() stdin = true end })
vim.api.nvim_create_autocmd('VimEnter', {
  group = group,
  nested = true,
  callback = function()
    -- Nothing is restored if the user names files, pipes text in or loads a session file, or if there is no screen.
    if vim.fn.argc() > 0 or stdin or vim.v.this_session ~= '' or #vim.api.nvim_list_uis() == 0 then return end
    require('restoration').start()
  end,
})
vim.api.nvim_create_user_command('RestorationStart', function()
  require('restoration.restoring').commanded()
  require('restoration').start()
end, {
  bar = true,
  desc = 'Keep the layout of this editor from now on, although it was started with files',
})
vim.api.nvim_create_user_command('RestorationStatus', function() print(require('restoration').status()) end, {
  bar = true,
  desc = 'Whether the layout of this editor is kept',
})
