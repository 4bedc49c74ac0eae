// SPDX-License-Identifier: Apache-2.0
//
// A process of the application that main.py is the delegate of.
import { appendFileSync } from "node:fs";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";

const { HOME, XDG_RUNTIME_DIR, RESTORATION_UNIT } = process.env;
const note = (line) => appendFileSync(`${HOME}/journal`, `right ${line}\n`);
const broker = createConnection(`${XDG_RUNTIME_DIR}/restorationd/broker.sock`);
const send = (message) => broker.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const waiting = new Map();
let lastID = 0;

function call(method, params) {
  const id = ++lastID;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

createInterface({ input: broker }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)(result);
  if (method === "decodeRestorableStateWithCoder") for (const each of params.objects) note(`back ${each.state.n}`);
  if (method === "applicationFinishedRestoringState") note("finished");
  if (id !== undefined) send({ id, result: {} });
});

await call("initialize", {
  application: "org.example.Three",
  process: "right",
  serves: ["decodeRestorableStateWithCoder", "applicationFinishedRestoringState"],
  storyboard: { unit: RESTORATION_UNIT },
});
const { object, restoration } = await call("registerObjectForStateRestoration", {
  restorationIdentifier: "Right",
  restorationParent: ["Main"],
  awaitParentMilliseconds: 10000,
});
if (restoration.state === "none") {
  await call("encodeRestorableState", { object, state: { n: process.pid } });
  note(`pushed ${process.pid}`);
}
