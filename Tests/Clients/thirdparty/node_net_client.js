// SPDX-License-Identifier: Apache-2.0
//
// Node's net and readline: one message a line, both directions.
'use strict';

const net = require('node:net');
const readline = require('node:readline');
const contract = require('./contract.js');
const { path, expect, expectState } = contract;

const connection = net.connect(contract.socket);
const open = new Map();
const send = (message) => connection.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');

function call(method, params) {
  const id = open.size + 1;
  send({ id, method, params });
  return new Promise((resolve, reject) => open.set(id, { resolve, reject }));
}

let noteSave;
const saved = new Promise((resolve) => { noteSave = resolve; });

const handlers = {
  encodeRestorableStateWithCoder({ round, objects }) {
    expect('encodeRequest', [round > 0, objects.map((entry) => entry.path)], [true, [path]]);
    return { states: objects.map(({ object }) => ({ object, state: contract.asked })) };
  },
  applicationStateSaved({ generation }) {
    expect('saved', generation, 1);
    noteSave();
  },
};

readline.createInterface({ input: connection }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method) {
    const answer = handlers[method](params);
    if (id !== undefined) send({ id, result: answer });
  } else if (error) {
    open.get(id).reject(Object.assign(new Error(error.message), error));
  } else {
    open.get(id).resolve(result);
  }
});

(async () => {
  const { application, serves } = contract;
  const opened = await call('initialize', { application, process: 'node-net', serves });
  expect('initialize', opened.protocolVersion, 1);
  const registered = await call('registerObjectForStateRestoration', contract.object);
  expect('register', registered.path, path);
  send({ method: 'encodeRestorableState', params: { object: path, state: contract.draft } });
  expectState('notify', await call('decodeRestorableState', [path]), contract.draft);
  const stored = await call('encodeRestorableState', { object: registered.object, state: contract.state });
  expect('encode', stored.durability, 'disk');
  expectState('decode', await call('decodeRestorableState', { object: path }), contract.state);
  await call('decodeRestorableState', { object: contract.missing }).catch(({ code, data }) =>
    expect('error -32002 unknownObject', [code, data.kind], [-32002, 'unknownObject']));
  console.log('waiting');
  await saved;
  expect('goodbye', await call('goodbye', { reason: 'restart' }), {});
  connection.end();
})();
