/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes commands of a test with Protocol/clients/c: driver SOCKET
 *
 * The commands are those of driver.py, which lists them. After a loss, resuming and sending again is done by
 * this program, as in any program in C; Python's library does it itself. A callback that comes before `register` has
 * returned is the event `early`. More:
 *
 *   misuse    makes calls that no program may make                    -> the message and the hint of each
 *   retort    from now on the callback for errors that name no call makes a call; its answer counts as `retort`  -> null
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restoration.h"

enum { things_max = 256, patience = 20000 };

typedef struct kept_object {
  char *name;
  json_t *state; /* what its encode callback gives */
  restoration_object *object;
} kept_object;

static kept_object things[things_max];
static size_t things_count;
static json_t *events, *counts, *classes;
static restoration *session;
static const char *socket_path;
static int resume_patience = 10000;
static bool retorts;
static restoration_failure failure;

static void note(json_t *event) {
  const char *what = json_string_value(json_array_get(event, 0));
  json_int_t count = json_integer_value(json_object_get(counts, what));
  json_object_set_new(counts, what, json_integer(count + 1));
  json_array_append_new(events, event);
}

static kept_object *find(const char *name) {
  for (size_t i = 0; i < things_count; i++)
    if (strcmp(things[i].name, name) == 0) return &things[i];
  kept_object *made = &things[things_count++];
  made->name = strdup(name);
  made->state = json_null();
  return made;
}

static kept_object *thing_of(const json_t *command) { return find(json_string_value(json_object_get(command, "name"))); }

/* What a call that has to fail by RESTORATION_MISUSE says. */
static void take_misuse(json_t *said, bool has_failed) {
  bool is_misuse = has_failed && failure.code == RESTORATION_MISUSE;
  json_array_append_new(said, is_misuse ? json_pack("[ss]", failure.message, failure.hint) : json_null());
  failure = (restoration_failure){0};
}

static json_t *misuse(void) {
  json_t *said = json_array();
  restoration_session options = {0};
  take_misuse(said, restoration_open("", &failure) == NULL);
  take_misuse(said, restoration_begin(session, &options, patience, &failure) < 0);
  take_misuse(said, restoration_encode(NULL, json_object(), patience, &failure) < 0);
  take_misuse(said, restoration_decode(NULL, patience, &failure) == NULL);
  take_misuse(said, restoration_invalidate(NULL, &failure) < 0);
  take_misuse(said, restoration_rename(NULL, "A", -1, patience, &failure) < 0);
  take_misuse(said, restoration_move(NULL, json_integer(1), patience, &failure) < 0);
  take_misuse(said, restoration_unregister(NULL, patience, &failure) < 0);
  return said;
}

/* False with a failure if it was not registered. */
static bool is_there(const json_t *command) {
  if (thing_of(command)->object) return true;
  failure = (restoration_failure){.code = RESTORATION_MISUSE, .kind = "misuse", .message = "it is not registered"};
  return false;
}

/* A state of the test may be given by its length. */
static json_t *lengthened(json_t *state) {
  const json_t *bytes = json_object_get(state, "bytes");
  if (!bytes) return json_incref(state);
  size_t size = (size_t)json_integer_value(bytes);
  char *text = malloc(size + 1);
  memset(text, 'x', size);
  json_t *result = json_pack("{s:s%}", "text", text, size);
  free(text);
  return result;
}

static json_t *shortened(json_t *state) {
  const json_t *text = json_object_get(state, "text");
  if (json_string_length(text) <= 1000) return state ? json_incref(state) : json_null();
  return json_pack("{s:I}", "bytes", (json_int_t)json_string_length(text));
}

/* -- Callbacks -------------------------------------------------------------------------------------------------- */

/* A callback needs the object, which the program has when it is registered. */
static kept_object *called(const restoration_object *object, void *data) {
  kept_object *thing = data;
  if (thing->object != object) note(json_pack("[ss]", "early", thing->name));
  return thing;
}

static json_t *encode(restoration_object *object, void *data) {
  kept_object *thing = called(object, data);
  note(json_pack("[ss]", "encode", thing->name));
  if (json_is_string(thing->state)) return NULL;
  return lengthened(thing->state);
}

static void decode(restoration_object *object, json_t *state, void *data) {
  note(json_pack("[sso]", "decode", called(object, data)->name, shortened(state)));
}

static void finished(restoration_object *object, void *data) {
  note(json_pack("[ss]", "finished", called(object, data)->name));
}

static const restoration_callbacks callbacks = {encode, decode, finished};

static json_t *factory(restoration *handle, const char *method, json_t *params, void *data) {
  (void)method;
  (void)data;
  json_t *path = json_copy(json_object_get(params, "identifierPath"));
  if (!json_is_string(json_array_get(path, json_array_size(path) - 1))) {
    json_decref(path);
    return NULL;
  }
  char text[1024] = "";
  for (size_t i = 0; i < json_array_size(path); i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "/" : "",
             json_is_string(json_array_get(path, i)) ? json_string_value(json_array_get(path, i)) : "?");
  note(json_pack("[ss]", "create", text));
  kept_object *made = find(json_string_value(json_array_get(path, json_array_size(path) - 1)));
  const char *instead = json_string_value(json_object_get(made->state, "instead"));
  if (instead) {
    json_decref(path);
    return strcmp(instead, "pass") == 0     ? restoration_pass()
           : strcmp(instead, "forget") == 0 ? restoration_forget()
                                            : restoration_awaited();
  }
  json_array_remove(path, json_array_size(path) - 1);
  json_t *registration = json_pack(
      "{s:s,s:O*}", "restorationIdentifier", made->name, "restorationClass", json_object_get(params, "restorationClass"));
  if (json_array_size(path) > 0) json_object_set(registration, "restorationParent", path);
  json_decref(path);
  made->object = restoration_register(handle, registration, &callbacks, made, patience, NULL);
  return made->object ? restoration_made(made->object) : NULL;
}

static json_t *take_loss(restoration *handle, const char *method, json_t *params, void *data) {
  (void)handle;
  (void)data;
  note(json_pack("[sO]", method, json_object_get(params, "host")));
  return NULL;
}

static void take_retort(restoration *handle, json_t *result, const restoration_failure *error, void *data) {
  (void)handle;
  (void)data;
  note(json_pack("[ss]", "retort", result ? "answered" : error->kind));
}

static void take_error(restoration *handle, json_t *result, const restoration_failure *error, void *data) {
  (void)result;
  (void)data;
  note(json_pack("[ss]", "error", error->kind));
  if (retorts) restoration_send(handle, "ping", json_object(), take_retort, NULL, NULL);
}

/* -- Commands --------------------------------------------------------------------------------------------------- */

static bool resume(void) {
  int result = restoration_resume(session, resume_patience, &failure);
  if (result < 0) return false;
  for (size_t i = 0; i < json_array_size(classes); i++)
    json_decref(restoration_call(
        session, "registerRestorationClass", json_pack("{s:O}", "restorationClass", json_array_get(classes, i)),
        patience, NULL));
  note(json_pack("[sb]", "reconnected", result));
  return true;
}

static json_t *open_session(const json_t *command) {
  restoration_close(session);
  session = restoration_open(socket_path, &failure);
  if (!session) return NULL;
  const json_t *serving = json_object_get(command, "serving");
  const json_t *seconds = json_object_get(command, "patience");
  if (seconds) resume_patience = (int)(json_number_value(seconds) * 1000);
  restoration_session options = {
      .application = json_string_value(json_object_get(command, "application")),
      .process = json_string_value(json_object_get(command, "process")),
      .serves_states = !serving || json_is_true(serving),
  };
  if (options.serves_states) restoration_serve(session, "objectWithRestorationIdentifierPath", factory, NULL);
  restoration_serve(session, "archiveLost", take_loss, NULL);
  restoration_on_error(session, take_error, NULL);
  json_t *more = json_pack("{s:O*}", "takeOver", json_object_get(command, "takeOver"));
  options.more = more;
  bool is_begun = restoration_begin(session, &options, patience, &failure) == 0;
  json_decref(more);
  if (is_begun)
    return json_incref((json_t *)(size_t)restoration_found(session));
  restoration_close(session);
  session = NULL;
  return NULL;
}

static json_t *register_thing(const json_t *command) {
  kept_object *thing = find(json_string_value(json_object_get(command, "identifier")));
  json_t *params = json_pack("{s:s}", "restorationIdentifier", thing->name);
  json_t *parent = json_object_get(command, "parent"), *class = json_object_get(command, "restorationClass");
  double wait = json_number_value(json_object_get(command, "wait"));
  if (parent) json_object_set(params, "restorationParent", parent);
  if (class) json_object_set(params, "restorationClass", class);
  if (json_object_get(command, "kind")) json_object_set(params, "kind", json_object_get(command, "kind"));
  if (json_object_get(command, "fresh")) json_object_set(params, "fresh", json_object_get(command, "fresh"));
  if (wait > 0) json_object_set_new(params, "awaitParentMilliseconds", json_integer((json_int_t)(wait * 1000)));
  restoration_object *object =
      restoration_register(session, json_incref(params), &callbacks, thing, patience, &failure);
  if (!object && failure.code == RESTORATION_MISUSE)
    object = restoration_register(session, json_incref(params), NULL, thing, patience, &failure);
  json_decref(params);
  if (!object) return NULL;
  thing->object = object;
  return json_pack(
      "{s:O,s:s,s:o*,s:o*}", "path", restoration_object_path(object), "state", restoration_object_found(object),
      "existing", restoration_object_existing(object) ? json_true() : NULL, "handing",
      restoration_object_handing(object) ? json_true() : NULL);
}

static json_t *push(const json_t *command) {
  json_t *state = json_object_get(command, "bytes") ? (json_t *)(size_t)command : json_object_get(command, "state");
  if (!is_there(command)) return NULL;
  for (int attempt = 0;; attempt++) {
    int result = restoration_encode(thing_of(command)->object, lengthened(state), patience, &failure);
    if (result >= 0) return json_boolean(result == 0);
    if (failure.code != RESTORATION_LOST || attempt == 2 || !resume()) return NULL;
  }
}

/* The application's own state, pushed and read again. */
static json_t *push_own(const json_t *command) {
  json_t *state = json_incref(json_object_get(command, "state"));
  if (restoration_encode_application(session, state, patience, &failure) != 0) return NULL;
  json_t *params = json_pack("{s:[]}", "object");
  json_t *result = restoration_call(session, "decodeRestorableState", params, patience, &failure);
  json_t *read = json_incref(json_object_get(result, "state"));
  json_decref(result);
  return read;
}

static json_t *decode_thing(const json_t *command) {
  if (!is_there(command)) return NULL;
  json_t *result = restoration_decode(thing_of(command)->object, patience, &failure);
  if (!result) return NULL;
  json_t *answer = json_pack(
      "{s:O,s:o}", "status", json_object_get(result, "status"), "state", shortened(json_object_get(result, "state")));
  json_decref(result);
  return answer;
}

static json_t *unregister_thing(const json_t *command) {
  kept_object *thing = thing_of(command);
  if (!is_there(command)) return NULL;
  if (restoration_unregister(thing->object, patience, &failure) < 0) return NULL;
  thing->object = NULL;
  return json_null();
}

static json_t *rename_thing(const json_t *command) {
  kept_object *thing = thing_of(command);
  const char *identifier = json_string_value(json_object_get(command, "identifier"));
  if (!is_there(command)) return NULL;
  return restoration_rename(thing->object, identifier, -1, patience, &failure) < 0 ? NULL : json_null();
}

static json_t *move_thing(const json_t *command) {
  restoration_object *parent = find(json_string_value(json_object_get(command, "parent")))->object;
  if (!is_there(command)) return NULL;
  json_t *named = parent ? json_integer(restoration_object_handle(parent)) : json_null();
  return restoration_move(thing_of(command)->object, named, patience, &failure) < 0 ? NULL : json_null();
}

static json_t *name_of(const restoration_object *object) {
  const kept_object *thing = object ? restoration_object_data(object) : NULL;
  return thing ? json_string(thing->name) : json_null();
}

/* The object of the program's own that a reference in a decoded state leads to. */
static json_t *referred(const json_t *command) {
  json_t *result = restoration_decode(thing_of(command)->object, patience, &failure);
  const char *key = json_string_value(json_object_get(command, "key"));
  json_t *name = name_of(restoration_object_of(session, json_object_get(json_object_get(result, "state"), key)));
  json_decref(result);
  return name;
}

/* Registers another object of the program's own under the same path. */
static json_t *register_twice(const json_t *command) {
  json_t *params = json_pack("{s:O}", "restorationIdentifier", json_object_get(command, "identifier"));
  return restoration_register(session, params, &callbacks, &session, patience, &failure) ? json_null() : NULL;
}

/* Reads the bytes and the date of a state, and writes them to another one. */
static json_t *pass_values(const json_t *command) {
  json_t *result = restoration_decode(
      find(json_string_value(json_object_get(command, "from")))->object, patience, &failure);
  const json_t *state = json_object_get(result, "state");
  size_t size;
  unsigned char *bytes = restoration_bytes_of(json_object_get(state, "data"), &size);
  struct timespec when;
  if (!bytes || !restoration_date_of(json_object_get(state, "date"), &when)) abort();
  json_t *values = json_pack("{s:o,s:o}", "data", restoration_bytes(bytes, size), "date", restoration_date(when));
  int pushed = restoration_encode(
      find(json_string_value(json_object_get(command, "to")))->object, values, patience, &failure);
  json_t *list = json_array();
  for (size_t i = 0; i < size; i++) json_array_append_new(list, json_integer(bytes[i]));
  free(bytes);
  json_decref(result);
  json_t *answer = json_pack(
      "{s:o,s:I}", "bytes", list, "milliseconds", (json_int_t)when.tv_sec * 1000 + when.tv_nsec / 1000000);
  if (pushed == 0) return answer;
  json_decref(answer);
  return NULL;
}

static json_t *list_objects(void) {
  json_t *result = json_object();
  for (size_t i = 0; i < things_count; i++)
    if (things[i].object)
      json_object_set_new(result, things[i].name, json_pack(
          "[Ob]", restoration_object_path(things[i].object), restoration_object_is_replaced(things[i].object)));
  return result;
}

static json_t *await_count(const json_t *command) {
  const char *what = json_string_value(json_object_get(command, "what"));
  json_int_t count = json_integer_value(json_object_get(command, "count"));
  while (json_integer_value(json_object_get(counts, what)) < count)
    if (restoration_wait(session, -1) < 0 && !resume()) return NULL;
  return json_incref(json_object_get(counts, what));
}

static void told(json_t *list, const char *what, bool has_failed) {
  json_array_append_new(list, json_pack("[ss]", what, has_failed ? failure.kind : ""));
}

/* What a child may do with its parent's session, and with its own. */
static json_t *in_child(const json_t *command) {
  json_t *list = json_array();
  restoration_object *object = thing_of(command)->object;
  told(list, "encode", restoration_encode(object, json_object(), patience, &failure) < 0);
  told(list, "decode", !restoration_decode(object, patience, &failure));
  told(list, "invalidate", restoration_invalidate(object, &failure) < 0);
  told(list, "notify", restoration_notify(session, "goodbye", json_pack("{s:s}", "reason", "closed"), &failure) < 0);
  told(list, "resume", restoration_resume(session, patience, &failure) < 0);
  told(list, "goodbye", restoration_goodbye(session, "closed", patience, &failure) < 0);
  json_array_append_new(list, json_pack("[si]", "wait", restoration_wait(session, -1)));
  json_array_append_new(list, json_pack("[si]", "fd", restoration_fd(session)));
  restoration_close(session);
  json_t *own = json_object_get(command, "identifier");
  session = restoration_open(socket_path, &failure);
  restoration_session options = {.application = "org.example.Notes", .process = "child"};
  int result = restoration_begin(session, &options, patience, &failure);
  json_t *params = json_pack("{s:O}", "restorationIdentifier", own);
  object = restoration_register(session, params, NULL, NULL, patience, &failure);
  if (result == 0) result = restoration_encode(object, json_pack("{s:s}", "of", "child"), patience, &failure);
  json_array_append_new(list, json_pack("[si]", "own", result));
  restoration_goodbye(session, "restart", patience, &failure);
  return list;
}

static json_t *fork_child(const json_t *command) {
  int ends[2];
  if (pipe(ends) < 0) return NULL;
  pid_t child = fork();
  if (child == 0) {
    json_dumpfd(in_child(command), ends[1], 0);
    _exit(0);
  }
  close(ends[1]);
  json_t *list = json_loadfd(ends[0], 0, NULL);
  close(ends[0]);
  waitpid(child, NULL, 0);
  return list ? list : json_null();
}

static json_t *say_goodbye(const json_t *command) {
  const char *reason = json_string_value(json_object_get(command, "reason"));
  if (restoration_goodbye(session, reason, patience, &failure) < 0) return NULL;
  for (size_t i = 0; i < things_count; i++) things[i].object = NULL;
  restoration_close(session);
  session = NULL;
  return json_null();
}

static json_t *perform(const char *what, const json_t *command) {
  if (strcmp(what, "open") == 0) return open_session(command);
  if (strcmp(what, "register") == 0) return register_thing(command);
  if (strcmp(what, "push") == 0) return push(command);
  if (strcmp(what, "own") == 0) return push_own(command);
  if (strcmp(what, "decode") == 0) return decode_thing(command);
  if (strcmp(what, "unregister") == 0) return unregister_thing(command);
  if (strcmp(what, "rename") == 0) return rename_thing(command);
  if (strcmp(what, "move") == 0) return move_thing(command);
  if (strcmp(what, "objects") == 0) return list_objects();
  if (strcmp(what, "referred") == 0) return referred(command);
  if (strcmp(what, "twice") == 0) return register_twice(command);
  if (strcmp(what, "pass") == 0) return pass_values(command);
  if (strcmp(what, "at") == 0) return name_of(restoration_object_at(session, json_object_get(command, "path")));
  if (strcmp(what, "await") == 0) return await_count(command);
  if (strcmp(what, "goodbye") == 0) return say_goodbye(command);
  if (strcmp(what, "fork") == 0) return fork_child(command);
  if (strcmp(what, "notify") == 0) {
    json_t *params = json_incref(json_object_get(command, "params"));
    const char *method = json_string_value(json_object_get(command, "method"));
    return restoration_notify(session, method, params, &failure) < 0 ? NULL : json_null();
  }
  if (strcmp(what, "set") == 0) {
    kept_object *thing = thing_of(command);
    json_decref(thing->state);
    thing->state = json_incref(json_object_get(command, "state"));
    return json_null();
  }
  if (strcmp(what, "invalidate") == 0)
    return !is_there(command) || restoration_invalidate(thing_of(command)->object, &failure) < 0 ? NULL : json_null();
  if (strcmp(what, "class") == 0) {
    json_t *name = json_object_get(command, "restorationClass");
    json_array_append(classes, name);
    json_t *params = json_pack("{s:O,s:O*}", "restorationClass", name, "shared", json_object_get(command, "shared"));
    json_t *result = restoration_call(session, "registerRestorationClass", params, patience, &failure);
    json_decref(result);
    return result ? json_null() : NULL;
  }
  if (strcmp(what, "save") == 0)
    return restoration_call(session, "saveApplicationState", json_pack("{s:i}", "deadlineMilliseconds", 15000), patience, &failure);
  if (strcmp(what, "restore") == 0) {
    double seconds = json_number_value(json_object_get(command, "deadline"));
    json_t *params = json_pack("{s:I}", "deadlineMilliseconds", (json_int_t)(seconds * 1000));
    return restoration_call(session, "restoreApplicationState", params, patience, &failure);
  }
  if (strcmp(what, "complete") == 0) {
    json_t *result = restoration_call(session, "completeStateRestoration", json_object(), patience, &failure);
    json_t *pending = json_incref(json_object_get(result, "pending"));
    json_decref(result);
    return pending;
  }
  if (strcmp(what, "call") == 0) {
    const json_t *timeout = json_object_get(command, "timeout");
    return restoration_call(
        session, json_string_value(json_object_get(command, "method")),
        json_incref(json_object_get(command, "params")),
        timeout ? (int)(json_number_value(timeout) * 1000) : patience, &failure);
  }
  if (strcmp(what, "log") == 0) {
    json_t *result = events;
    events = json_array();
    return result;
  }
  if (strcmp(what, "misuse") == 0) return misuse();
  if (strcmp(what, "retort") == 0) {
    retorts = true;
    return json_null();
  }
  if (strcmp(what, "close") == 0) {
    restoration_close(session);
    session = NULL;
    return json_null();
  }
  abort();
}

static json_t *failed(void) {
  json_t *path = json_array();
  char text[sizeof failure.path];
  memcpy(text, failure.path, sizeof text);
  for (char *next = NULL, *part = strtok_r(text, "/", &next); part; part = strtok_r(NULL, "/", &next))
    json_array_append_new(path, json_string(part));
  return json_pack(
      "{s:{s:i,s:s,s:{s:s,s:s,s:o}}}", "error", "code", failure.code, "message", failure.message, "data", "kind",
      failure.kind, "hint", failure.hint, "path", path);
}

static void take(const char *line) {
  json_t *command = json_loads(line, JSON_ALLOW_NUL, NULL);
  json_t *result = perform(json_string_value(json_object_get(command, "do")), command);
  json_t *answer = result ? json_pack("{s:o}", "ok", result) : failed();
  char *text = json_dumps(answer, JSON_COMPACT);
  puts(text);
  free(text);
  json_decref(answer);
  json_decref(command);
}

int main(int count, char **arguments) {
  if (count != 2) return 64;
  socket_path = arguments[1];
  setvbuf(stdout, NULL, _IOLBF, 0);
  events = json_array();
  counts = json_object();
  classes = json_array();
  static char input[1 << 16];
  size_t used = 0;
  for (;;) {
    int fd = session ? restoration_fd(session) : -1;
    struct pollfd polled[] = {{0, POLLIN, 0}, {fd, session ? restoration_events(session) : (short)0, 0}};
    poll(polled, 2, -1);
    if (polled[1].revents && restoration_dispatch(session) < 0 && !resume() && failure.code != RESTORATION_FENCED)
      return 3;
    if (!polled[0].revents) continue;
    ssize_t read_count = read(0, input + used, sizeof input - 1 - used);
    if (read_count <= 0) break;
    used += (size_t)read_count;
    char *feed;
    while ((feed = memchr(input, '\n', used))) {
      *feed = 0;
      take(input);
      used -= (size_t)(feed + 1 - input);
      memmove(input, feed + 1, used);
    }
  }
  restoration_close(session);
  for (size_t i = 0; i < things_count; i++) {
    free(things[i].name);
    json_decref(things[i].state);
  }
  json_decref(events);
  json_decref(counts);
  json_decref(classes);
  return 0;
}
