// SPDX-License-Identifier: Apache-2.0
//
// jansson: json_dumpfd writes a message, json_loadfd reads the next; nothing separates them. Both directions.

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int broker;
static int last_id;
static int object_is_saved;

// Reports a step, or ends the program if the value is not the expected one.
static void expect(const char *step, int is_right, json_t *actual) {
  if (!is_right) {
    char *text = json_dumps(actual, JSON_ENCODE_ANY);
    printf("not ok %s: %s\n", step, text ? text : "nothing");
    exit(1);
  }
  printf("ok %s\n", step);
}

static json_t *state_of_notes(void) {
  return json_pack(
      "{s:s, s:{s:[i, [b, n], {s:{s:[]}}], s:{}}, s:f, s:I}", "text", "Grüße, 世界 🗒 \"\\\u2028", "nested", "list", 1, 1,
      "a", "b", "", "ratio", 0.1, "big", (json_int_t)9007199254740993);
}

static void send_message(json_t *message) {
  json_object_set_new(message, "jsonrpc", json_string("2.0"));
  if (json_dumpfd(message, broker, JSON_COMPACT) != 0) exit(1);
  json_decref(message);
}

static void answer_call(json_t *message) {
  json_int_t object;
  const char *method, *component;
  int is_right =
      json_unpack(
          message, "{s:s, s:{s:[{s:I, s:[s]}]}}", "method", &method, "params", "objects", "object", &object, "path",
          &component) == 0;
  expect("encodeRequest", is_right && !strcmp(method, "encodeRestorableStateWithCoder"), message);
  json_t *state = state_of_notes();
  json_object_set_new(state, "asked", json_true());
  json_t *id = json_object_get(message, "id");
  send_message(json_pack("{s:O, s:{s:[{s:I, s:o}]}}", "id", id, "result", "states", "object", object, "state", state));
}

static void take_notification(json_t *message) {
  int generation = 0;
  json_unpack(message, "{s:{s:i}}", "params", "generation", &generation);
  expect("saved", generation == 1, message);
  object_is_saved = 1;
}

// The next message; null after a call or notification of the broker, which is handled.
static json_t *receive(void) {
  json_error_t error;
  json_t *message = json_loadfd(broker, JSON_DISABLE_EOF_CHECK, &error);
  if (!message) {
    printf("not ok: %s\n", error.text);
    exit(1);
  }
  if (!json_object_get(message, "method")) return message;
  if (json_object_get(message, "id")) answer_call(message);
  else take_notification(message);
  json_decref(message);
  return NULL;
}

// The answer to a request; takes the parameters over.
static json_t *call(const char *method, json_t *params) {
  send_message(json_pack("{s:i, s:s, s:o}", "id", ++last_id, "method", method, "params", params));
  json_t *answer = NULL;
  while (!answer) answer = receive();
  if (json_integer_value(json_object_get(answer, "id")) != last_id) expect(method, 0, answer);
  return answer;
}

static void expect_state(const char *step, json_t *answer, json_t *state) {
  const char *status = "";
  json_t *actual = NULL;
  json_unpack(answer, "{s:{s:s, s:o}}", "result", "status", &status, "state", &actual);
  expect(step, !strcmp(status, "available") && json_equal(actual, state), answer);
  json_decref(answer);
  json_decref(state);
}

int main(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, getenv("RESTORATIOND_SOCKET"), sizeof address.sun_path - 1);
  broker = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(broker, (struct sockaddr *)&address, sizeof address) != 0) return 1;
  setvbuf(stdout, NULL, _IOLBF, 0);

  json_t *answer = call("initialize", json_pack(
      "{s:s, s:s, s:[s, s]}", "application", getenv("RESTORATION_APPLICATION"), "process", "jansson", "serves",
      "encodeRestorableStateWithCoder", "applicationStateSaved"));
  int version = 0;
  json_unpack(answer, "{s:{s:i}}", "result", "protocolVersion", &version);
  expect("initialize", version == 1, answer);
  json_decref(answer);

  answer = call("registerObjectForStateRestoration",
                json_pack("{s:s, s:s}", "restorationIdentifier", "Notes", "objectClass", "Notes"));
  json_int_t object = 0;
  const char *component = "";
  json_unpack(answer, "{s:{s:I, s:[s]}}", "result", "object", &object, "path", &component);
  expect("register", object > 0 && !strcmp(component, "Notes"), answer);
  json_decref(answer);

  send_message(json_pack("{s:s, s:{s:[s], s:{s:b}}}", "method", "encodeRestorableState", "params", "object", "Notes",
                         "state", "draft", 1));
  expect_state("notify", call("decodeRestorableState", json_pack("[[s]]", "Notes")), json_pack("{s:b}", "draft", 1));

  answer = call("encodeRestorableState", json_pack("{s:I, s:o}", "object", object, "state", state_of_notes()));
  const char *durability = "";
  json_unpack(answer, "{s:{s:s}}", "result", "durability", &durability);
  expect("encode", !strcmp(durability, "disk"), answer);
  json_decref(answer);
  expect_state("decode", call("decodeRestorableState", json_pack("{s:[s]}", "object", "Notes")), state_of_notes());

  answer = call("decodeRestorableState", json_pack("{s:[s]}", "object", "Missing"));
  int code = 0;
  const char *kind = "";
  json_unpack(answer, "{s:{s:i, s:{s:s}}}", "error", "code", &code, "data", "kind", &kind);
  expect("error -32002 unknownObject", code == -32002 && !strcmp(kind, "unknownObject"), answer);
  json_decref(answer);

  puts("waiting");
  while (!object_is_saved) json_decref(receive());
  answer = call("goodbye", json_pack("{s:s}", "reason", "restart"));
  expect("goodbye", json_object_size(json_object_get(answer, "result")) == 0, answer);
  json_decref(answer);
  return 0;
}
