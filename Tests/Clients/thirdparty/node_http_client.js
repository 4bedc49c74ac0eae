// SPDX-License-Identifier: Apache-2.0
//
// Node's http with socketPath, on one connection that is kept.
'use strict';

const http = require('node:http');
const contract = require('./contract.js');
const { application, path, expect, expectState } = contract;

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let lastID = 0;

/** Posts a body; the status and the text of the answer. */
function post(body) {
  const options = { socketPath: contract.socket, path: '/', method: 'POST', agent };
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part) => { text += part; });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    request.on('error', reject);
    // If no length is given, Node sends the body in chunks.
    request.write(body.slice(0, 10));
    request.end(body.slice(10));
  });
}

async function call(method, params) {
  lastID += 1;
  const { status, text } = await post(JSON.stringify({ jsonrpc: '2.0', id: lastID, method, params }));
  if (status !== 200) throw new Error(`HTTP ${status}`);
  const { result, error } = JSON.parse(text);
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

(async () => {
  const opened = await call('initialize', { application, process: 'node-http', serves: contract.serves });
  expect('initialize', opened.protocolVersion, 1);
  const session = { application, session: opened.session };
  const registered = await call('registerObjectForStateRestoration', { ...contract.object, ...session });
  expect('register', registered.path, path);
  const params = { object: path, state: contract.draft, ...session };
  const push = await post(JSON.stringify({ jsonrpc: '2.0', method: 'encodeRestorableState', params }));
  if (push.status !== 204 || push.text) expect('notify', push, { status: 204, text: '' });
  expectState('notify', await call('decodeRestorableState', { object: path, ...session }), contract.draft);
  const stored = await call('encodeRestorableState', {
    object: registered.object, state: contract.state, ...session,
  });
  expect('encode', stored.durability, 'disk');
  expectState('decode', await call('decodeRestorableState', { object: path, ...session }), contract.state);
  const batch = await post(JSON.stringify(['ping', 'pong'].map((method) => ({ jsonrpc: '2.0', id: method, method }))));
  const answers = JSON.parse(batch.text).map(({ id, result, error }) => [id, result ?? error.code]);
  expect('batch', Object.fromEntries(answers), { ping: {}, pong: -32601 });
  await call('decodeRestorableState', { object: contract.missing, ...session }).catch(({ code, data }) =>
    expect('error -32002 unknownObject', [code, data && data.kind], [-32002, 'unknownObject']));
  console.log('waiting');
  const polled = await call('nextRequest', { waitMilliseconds: 20000, ...session });
  const { objects } = polled.params;
  expect('encodeRequest', [polled.method, objects.map((entry) => entry.path)], [contract.serves[0], [path]]);
  const states = objects.map(({ object }) => ({ object, state: contract.asked }));
  await call('answerRequest', { id: polled.id, result: { states }, ...session });
  const notice = await call('nextRequest', { waitMilliseconds: 20000, ...session });
  expect('saved', notice, { id: null, method: contract.serves[1], params: { generation: 1 } });
  expect('goodbye', await call('goodbye', { reason: 'restart', ...session }), {});
  agent.destroy();
})();
