// SPDX-License-Identifier: Apache-2.0

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A note that outlives its process: java Note.java IDENTIFIER [PARENT_COMPONENT ...]
 *
 * <p>Every line on standard input becomes the note. However the program ends, the next one with the same identifier has
 * the note again. See ../README.md for the broker's part. Needs nothing but Java 17; as that has no
 * JSON, what is needed of it is at the end of this file.
 */
public final class Note {
  private static final String LANGUAGE = "java";
  // Whatever the locale is: the protocol and this program speak UTF-8.
  private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, UTF_8);
  private static final PrintStream ERR = new PrintStream(new FileOutputStream(FileDescriptor.err), true, UTF_8);

  private final SocketChannel connection;
  private final BlockingQueue<Map<?, ?>> answers = new LinkedBlockingQueue<>();
  private long lastId;
  /** Null: nothing yet. One thread writes it; the thread that answers the broker reads it. */
  private volatile String note;

  private Note(SocketChannel connection) {
    this.connection = connection;
    var listener = new Thread(this::listen);
    listener.setDaemon(true);
    listener.start();
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 0) {
      throw fail(64, "usage: java Note.java IDENTIFIER [PARENT_COMPONENT ...]");
    }
    var path = variable("RESTORATIOND_SOCKET", variable("XDG_RUNTIME_DIR", "") + "/restorationd/broker.sock");
    SocketChannel connection;
    try {
      connection = SocketChannel.open(UnixDomainSocketAddress.of(path));
    } catch (IOException error) {
      var advice = "start restorationd, or set RESTORATIOND_SOCKET";
      throw fail(69, "no broker at " + path + " (" + error.getMessage() + "): " + advice);
    }
    new Note(connection).run(arguments[0], Arrays.asList(arguments).subList(1, arguments.length));
  }

  private void run(String identifier, List<String> parent) throws Exception {
    var session = new LinkedHashMap<String, Object>();
    session.put("application", variable("RESTORATION_APPLICATION", "org.example.notes"));
    session.put("process", LANGUAGE);
    session.put("serves", List.of("encodeRestorableStateWithCoder"));
    var unit = variable("RESTORATION_UNIT", "");
    session.put("storyboard", unit.isEmpty() ? null : Map.of("unit", unit));
    call("initialize", session);
    var registration = new LinkedHashMap<String, Object>();
    registration.put("restorationIdentifier", identifier);
    registration.put("restorationParent", parent.isEmpty() ? null : parent);
    registration.put("awaitParentMilliseconds", 10_000);
    var object = call("registerObjectForStateRestoration", registration).get("object");
    var saved = call("decodeRestorableState", Map.of("object", object));
    // Another program may have saved a state of another form.
    if (saved.get("state") instanceof Map<?, ?> state && state.get("note") instanceof String text) {
      note = text;
    }
    OUT.println(note == null ? "new" : "restored: " + note);
    call("completeStateRestoration", Map.of());

    var input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (var line = input.readLine(); line != null && !line.equals("quit"); line = input.readLine()) {
      note = line;
      OUT.println("noted: " + note);
      call("invalidateRestorableState", Map.of("object", object));
    }
    // After goodbye the broker would not ask for a note that was typed a moment ago.
    if (note != null) {
      call("encodeRestorableState", Map.of("object", object, "state", state()));
    }
    call("goodbye", Map.of("reason", "restart"));
  }

  private Map<String, String> state() {
    return Map.of("language", LANGUAGE, "note", note);
  }

  /** The broker saves. If there is no note yet, the saved state stays. */
  private Map<String, ?> serve(String method, Map<?, ?> params) {
    if (!method.equals("encodeRestorableStateWithCoder")) {
      return Map.of("error", Map.of("code", -32601, "message", "there is no " + method));
    }
    Map<String, ?> state = note == null ? Map.of("unchanged", true) : Map.of("state", state());
    var states = new ArrayList<Map<String, Object>>();
    for (var asked : (List<?>) params.get("objects")) {
      var answer = new LinkedHashMap<String, Object>(state);
      answer.put("object", ((Map<?, ?>) asked).get("object"));
      states.add(answer);
    }
    return Map.of("result", Map.of("states", states));
  }

  // The connection: JSON-RPC both ways, one message a line.

  /** Calls the broker and waits for the result. */
  private Map<?, ?> call(String method, Map<String, ?> params) throws InterruptedException {
    lastId += 1;
    send(Map.of("id", lastId, "method", method, "params", params));
    var answer = answers.take();
    if (answer.get("error") instanceof Map<?, ?> error) {
      var hint = error.get("data") instanceof Map<?, ?> data ? data.get("hint") : null;
      throw fail(1, error.get("message") + (hint == null ? "" : System.lineSeparator() + "hint: " + hint));
    }
    return (Map<?, ?>) answer.get("result");
  }

  /** Reads messages of the broker, and answers its calls at any time. */
  private void listen() {
    try {
      var input = new BufferedReader(new InputStreamReader(Channels.newInputStream(connection), UTF_8));
      for (var line = input.readLine(); line != null; line = input.readLine()) {
        var message = (Map<?, ?>) new Json(line).read();
        if (!message.containsKey("method")) {
          answers.add(message);
        } else if (message.containsKey("id")) {
          var answer = new LinkedHashMap<String, Object>(
              serve((String) message.get("method"), (Map<?, ?>) message.get("params")));
          answer.put("id", message.get("id"));
          send(answer);
        }
      }
    } catch (IOException error) {
      // It has ended, as below.
    } catch (RuntimeException error) {
      throw fail(1, "the broker is not understood: " + error.getMessage());
    }
    throw fail(69, "the broker has ended the connection");
  }

  private synchronized void send(Map<String, ?> members) {
    var message = new LinkedHashMap<String, Object>(members);
    message.put("jsonrpc", "2.0");
    var bytes = ByteBuffer.wrap((Json.text(message) + "\n").getBytes(UTF_8));
    try {
      while (bytes.hasRemaining()) {
        connection.write(bytes);
      }
    } catch (IOException error) {
      // Reading shows that the connection is lost.
    }
  }

  private static String variable(String name, String otherwise) {
    var value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  /** Ends the program; thrown only for the compiler. */
  private static Error fail(int status, String text) {
    ERR.println(text);
    System.exit(status);
    return new Error();
  }

  /** The JSON that a client of the broker needs. Integers are read as Long, other numbers as Double. */
  private static final class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    static String text(Object value) {
      var out = new StringBuilder();
      if (value instanceof Map<?, ?> map) {
        map.forEach((name, member) -> out.append(out.isEmpty() ? "" : ",").append(quoted((String) name)).append(':')
            .append(text(member)));
        return "{" + out + "}";
      }
      if (value instanceof List<?> list) {
        list.forEach(element -> out.append(out.isEmpty() ? "" : ",").append(text(element)));
        return "[" + out + "]";
      }
      return value instanceof String string ? quoted(string) : String.valueOf(value);
    }

    private static String quoted(String string) {
      var out = new StringBuilder("\"");
      for (var character : string.toCharArray()) {
        switch (character) {
          case '"', '\\' -> out.append('\\').append(character);
          default -> out.append(character < ' ' ? String.format("\\u%04x", (int) character) : character);
        }
      }
      return out.append('"').toString();
    }

    /** The next value. */
    Object read() {
      if (take("{")) {
        var map = new LinkedHashMap<String, Object>();
        if (take("}")) {
          return map;
        }
        do {
          expect("\"");
          var name = string();
          expect(":");
          map.put(name, read());
        } while (take(","));
        expect("}");
        return map;
      }
      if (take("[")) {
        var list = new ArrayList<Object>();
        if (take("]")) {
          return list;
        }
        do {
          list.add(read());
        } while (take(","));
        expect("]");
        return list;
      }
      if (take("\"")) {
        return string();
      }
      if (take("null")) {
        return null;
      }
      return take("true") ? Boolean.TRUE : take("false") ? Boolean.FALSE : number();
    }

    private Number number() {
      var start = at;
      while (at < text.length() && "0123456789+-.eE".indexOf(text.charAt(at)) >= 0) {
        at += 1;
      }
      var digits = text.substring(start, at);
      return digits.matches("-?[0-9]{1,18}") ? (Number) Long.valueOf(digits) : (Number) Double.valueOf(digits);
    }

    /** The rest of a string. */
    private String string() {
      var string = new StringBuilder();
      while (!text.startsWith("\"", at)) {
        var character = text.charAt(at++);
        if (character == '\\') {
          character = text.charAt(at++);
          var known = "bfnrt".indexOf(character);
          if (known >= 0) {
            character = "\b\f\n\r\t".charAt(known);
          } else if (character == 'u') {
            // Characters beyond U+FFFF come as two escapes, as in Java.
            character = (char) Integer.parseInt(text.substring(at, at += 4), 16);
          }
        }
        string.append(character);
      }
      at += 1;
      return string.toString();
    }

    private void expect(String word) {
      if (!take(word)) {
        throw new IllegalArgumentException("no JSON at " + at + ": " + text);
      }
    }

    /** Skips this, and space before it, if it is next. */
    private boolean take(String word) {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
        at += 1;
      }
      var isNext = text.startsWith(word, at);
      at += isNext ? word.length() : 0;
      return isNext;
    }
  }
}
