// SPDX-License-Identifier: Apache-2.0
//
// Shared by the Node programs of this directory: the states, and the reports. See README.md.
'use strict';

const { isDeepStrictEqual } = require('node:util');

const draft = { draft: true };
// Node's numbers are doubles: no integer beyond 2^53 - 1.
const state = {
  text: 'Grüße, 世界 🗒 "\\\u2028',
  nested: { list: [1, [true, null], { a: { b: [] } }], '': {} },
  ratio: 0.1,
  big: Number.MAX_SAFE_INTEGER,
};

/** Reports a step, or ends the program if the value is not the expected one. */
function expect(step, actual, expected) {
  if (!isDeepStrictEqual(actual, expected)) {
    console.log(`not ok ${step}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
    process.exit(1);
  }
  console.log(`ok ${step}`);
}

module.exports = {
  socket: process.env.RESTORATIOND_SOCKET,
  application: process.env.RESTORATION_APPLICATION,
  object: { restorationIdentifier: 'Notes', objectClass: 'Notes' },
  path: ['Notes'],
  missing: ['Missing'],
  serves: ['encodeRestorableStateWithCoder', 'applicationStateSaved'],
  draft,
  state,
  asked: { ...state, asked: true },
  expect,
  expectState: (step, decoded, expected) =>
    expect(step, [decoded.status, decoded.state], ['available', expected]),
};
