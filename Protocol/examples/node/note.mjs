#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// A note that outlives its process: note.mjs IDENTIFIER [PARENT_COMPONENT ...]
//
// Every line on standard input becomes the note. However the program ends, the next one with the same identifier has
// the note again. See ../README.md for the broker's part. Needs only Node.js.
import net from "node:net";
import process from "node:process";

const language = "node";

/** Lines of a stream. (The module readline would also end a line at U+2028, which may stand in JSON as it is.) */
async function* lines(stream) {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

/** Ends the program: lines for standard error, and the exit status. */
class Failure extends Error {
  constructor(status, message, hint) {
    super(hint ? `${message}\nhint: ${hint}` : message);
    this.status = status;
  }
}

/** The connection: JSON-RPC both ways, one message a line. */
class Broker {
  #socket;
  #serve;
  #pending = new Map();
  #lastId = 0;

  /** `serve(method, params)` answers a call of the broker; undefined if the method is unknown. */
  constructor(path, serve) {
    this.#serve = serve;
    this.#socket = net.createConnection(path);
    /** Never resolved; rejected when the connection ends. */
    this.ended = this.#listen(path);
    this.ended.catch(() => {}); // Wakes the waiting readers.
  }

  async #listen(path) {
    try {
      for await (const line of lines(this.#socket)) this.#receive(JSON.parse(line));
    } catch (error) {
      if (error.syscall === "connect") {
        throw new Failure(69, `no broker at ${path} (${error.code}): start restorationd, or set RESTORATIOND_SOCKET`);
      }
      if (error.syscall === undefined) throw error;
    }
    throw new Failure(69, "the broker has ended the connection");
  }

  #receive({ id, method, params, result, error }) {
    if (method === undefined) {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) reject(new Failure(1, error.message, error.data?.hint));
      else resolve(result);
    } else if (id !== undefined) {
      const answer = this.#serve(method, params);
      this.#send(answer ? { id, result: answer } : { id, error: { code: -32601, message: `there is no ${method}` } });
    }
  }

  #send(message) {
    this.#socket.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  /** Calls the broker, and handles other messages meanwhile. */
  call(method, params = {}) {
    const id = ++this.#lastId;
    this.#send({ id, method, params });
    return Promise.race([new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject })), this.ended]);
  }
}

let note; // nothing yet

const state = () => ({ language, note });

/** The broker saves. If there is no note yet, the saved state stays. */
function serve(method, { objects }) {
  if (method !== "encodeRestorableStateWithCoder") return undefined;
  const answer = note === undefined ? { unchanged: true } : { state: state() };
  return { states: objects.map(({ object }) => ({ object, ...answer })) };
}

async function run(identifier, parent) {
  const { RESTORATIOND_SOCKET, XDG_RUNTIME_DIR, RESTORATION_APPLICATION, RESTORATION_UNIT } = process.env;
  const broker = new Broker(RESTORATIOND_SOCKET || `${XDG_RUNTIME_DIR}/restorationd/broker.sock`, serve);
  await broker.call("initialize", {
    application: RESTORATION_APPLICATION || "org.example.notes",
    process: language,
    storyboard: RESTORATION_UNIT ? { unit: RESTORATION_UNIT } : null,
    serves: ["encodeRestorableStateWithCoder"],
  });
  const { object } = await broker.call("registerObjectForStateRestoration", {
    restorationIdentifier: identifier,
    restorationParent: parent.length ? parent : null,
    awaitParentMilliseconds: 10000,
  });
  const saved = await broker.call("decodeRestorableState", { object });
  // Another program may have saved a state of another form.
  if (typeof saved.state?.note === "string") note = saved.state.note;
  console.log(note === undefined ? "new" : `restored: ${note}`);
  await broker.call("completeStateRestoration");

  const typing = async () => {
    for await (const line of lines(process.stdin)) {
      if (line === "quit") break;
      note = line;
      console.log(`noted: ${note}`);
      await broker.call("invalidateRestorableState", { object });
    }
  };
  await Promise.race([typing(), broker.ended]);
  // After goodbye the broker would not ask for a note that was typed a moment ago.
  if (note !== undefined) await broker.call("encodeRestorableState", { object, state: state() });
  await broker.call("goodbye", { reason: "restart" });
}

const [identifier, ...parent] = process.argv.slice(2);
try {
  if (identifier === undefined) throw new Failure(64, "usage: note.mjs IDENTIFIER [PARENT_COMPONENT ...]");
  await run(identifier, parent);
  process.exit(0);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.error(error.message);
  process.exit(error.status);
}
