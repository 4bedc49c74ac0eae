// SPDX-License-Identifier: Apache-2.0

//! A note that outlives its process: note IDENTIFIER [PARENT_COMPONENT ...]
//!
//! Every line on standard input becomes the note. However the program ends, the next one with the same identifier has
//! the note again. See ../README.md for the broker's part. Needs nothing but Rust's standard library; as
//! that has no JSON, what is needed of it is in json.rs.

mod json;

use json::{object, Value};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::{env, thread};

const LANGUAGE: &str = "rust";

fn fail(status: i32, text: &str) -> ! {
    eprintln!("{text}");
    exit(status)
}

/// The connection, JSON-RPC both ways with one message a line, and what there is to save. One thread calls the broker;
/// another one reads messages, and answers calls of the broker at any time.
struct Broker {
    connection: Mutex<UnixStream>,
    note: Mutex<Option<String>>,
}

impl Broker {
    fn send(&self, members: Vec<(&str, Value)>) {
        let mut message = vec![("jsonrpc", "2.0".into())];
        message.extend(members);
        let text = format!("{}\n", object(message));
        // Reading shows that the connection is lost.
        let _ = self.connection.lock().unwrap().write_all(text.as_bytes());
    }

    fn state(&self) -> Option<Value> {
        let note = self.note.lock().unwrap().clone()?;
        Some(object(vec![("language", LANGUAGE.into()), ("note", note.as_str().into())]))
    }

    fn listen(&self, reader: BufReader<UnixStream>, answers: Sender<Value>) {
        for line in reader.lines().map_while(Result::ok) {
            let message = json::parse(&line).unwrap_or_else(|| fail(1, "the broker does not speak JSON"));
            if message.get("method") == &Value::Null {
                let _ = answers.send(message);
            } else if message.get("id") != &Value::Null {
                self.serve(&message);
            }
        }
        fail(69, "the broker has ended the connection");
    }

    /// The broker saves. If there is no note yet, the saved state stays.
    fn serve(&self, request: &Value) {
        let (id, method) = (request.get("id").clone(), request.get("method").text());
        if method != "encodeRestorableStateWithCoder" {
            let text = format!("there is no {method}");
            let error = object(vec![("code", (-32601).into()), ("message", text.as_str().into())]);
            return self.send(vec![("id", id), ("error", error)]);
        }
        let state = match self.state() {
            Some(state) => ("state", state),
            None => ("unchanged", Value::Boolean(true)),
        };
        let objects = request.get("params").get("objects").items();
        let states = objects.iter().map(|asked| object(vec![("object", asked.get("object").clone()), state.clone()]));
        let result = object(vec![("states", Value::Array(states.collect()))]);
        self.send(vec![("id", id), ("result", result)]);
    }
}

/// The calls of this program.
struct Calls {
    broker: Arc<Broker>,
    answers: Receiver<Value>,
    last_id: i64,
}

impl Calls {
    fn connect(path: &str) -> io::Result<Calls> {
        let connection = UnixStream::connect(path)?;
        let reader = BufReader::new(connection.try_clone()?);
        let broker = Arc::new(Broker { connection: Mutex::new(connection), note: Mutex::new(None) });
        let (sender, answers) = channel();
        let listener = broker.clone();
        thread::spawn(move || listener.listen(reader, sender));
        Ok(Calls { broker, answers, last_id: 0 })
    }

    /// Calls the broker and waits for the result.
    fn call(&mut self, method: &str, params: Vec<(&str, Value)>) -> Value {
        self.last_id += 1;
        let params = object(params);
        self.broker.send(vec![("id", self.last_id.into()), ("method", method.into()), ("params", params)]);
        let answer = self.answers.recv().expect("the listener ends with the program");
        let error = answer.get("error");
        if error == &Value::Null {
            return answer.get("result").clone();
        }
        let hint = error.get("data").get("hint").text();
        let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
        fail(1, &format!("{}{hint}", error.get("message").text()))
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (identifier, parent) = arguments
        .split_first()
        .unwrap_or_else(|| fail(64, "usage: note IDENTIFIER [PARENT_COMPONENT ...]"));
    let path = variable("RESTORATIOND_SOCKET").unwrap_or_else(|| {
        let directory = variable("XDG_RUNTIME_DIR").unwrap_or_default();
        format!("{directory}/restorationd/broker.sock")
    });
    let mut calls = Calls::connect(&path).unwrap_or_else(|error| {
        let advice = "start restorationd, or set RESTORATIOND_SOCKET";
        fail(69, &format!("no broker at {path} ({error}): {advice}"))
    });

    let application = variable("RESTORATION_APPLICATION").unwrap_or_else(|| "org.example.notes".into());
    let served = Value::Array(vec!["encodeRestorableStateWithCoder".into()]);
    let mut session =
        vec![("application", application.as_str().into()), ("process", LANGUAGE.into()), ("serves", served)];
    if let Some(unit) = variable("RESTORATION_UNIT") {
        session.push(("storyboard", object(vec![("unit", unit.as_str().into())])));
    }
    calls.call("initialize", session);
    let mut registration = vec![
        ("restorationIdentifier", identifier.as_str().into()),
        ("awaitParentMilliseconds", 10_000.into()),
    ];
    if !parent.is_empty() {
        let components = parent.iter().map(|component| component.as_str().into());
        registration.push(("restorationParent", Value::Array(components.collect())));
    }
    let registered = calls.call("registerObjectForStateRestoration", registration);
    let handle = ("object", registered.get("object").clone());
    let saved = calls.call("decodeRestorableState", vec![handle.clone()]);
    // Another program may have saved a state of another form.
    if let Value::Text(note) = saved.get("state").get("note") {
        println!("restored: {note}");
        *calls.broker.note.lock().unwrap() = Some(note.clone());
    } else {
        println!("new");
    }
    calls.call("completeStateRestoration", vec![]);

    for line in io::stdin().lock().split(b'\n') {
        let note = String::from_utf8_lossy(&line?).into_owned();
        if note == "quit" {
            break;
        }
        println!("noted: {note}");
        *calls.broker.note.lock().unwrap() = Some(note);
        calls.call("invalidateRestorableState", vec![handle.clone()]);
    }
    // After goodbye the broker would not ask for a note that was typed a moment ago.
    if let Some(state) = calls.broker.state() {
        calls.call("encodeRestorableState", vec![handle, ("state", state)]);
    }
    calls.call("goodbye", vec![("reason", "restart".into())]);
    Ok(())
}
