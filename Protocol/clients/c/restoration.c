/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "restoration.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ENCODE "encodeRestorableStateWithCoder"
#define DECODE "decodeRestorableStateWithCoder"
#define FINISHED "applicationFinishedRestoringState"
#define ARCHIVE_LOST "archiveLost"
#define STATE_WANTED "stateWanted"

enum {
  read_bytes = 1 << 16,
  reads_per_dispatch = 64,
  line_bytes_max = 1 << 30,
  kept_bytes = 1 << 20, /* of an empty byte_queue */
  write_depth = 2048,   /* jansson reads no deeper */
  write_values = 1 << 26,
};

/* Bytes from `start` to `end` are there. */
typedef struct byte_queue {
  char *bytes;
  size_t start, end, size, searched;
} byte_queue;

typedef struct pending {
  struct pending *next;
  json_int_t id;
  restoration_answer *answer;
  void *data;
} pending;

typedef struct served_method {
  struct served_method *next;
  restoration_handler *handler;
  void *data;
  char method[];
} served_method;

struct restoration_object {
  restoration_object *next;
  restoration *handle;
  json_int_t number;  /* 0 while the object is not registered */
  json_t *path;
  json_t *params;              /* as they were registered */
  restoration_object *parent;  /* if `params` names it by handle */
  json_t *unsaved;             /* the state that was pushed last, if the broker has not stored it (R4) */
  restoration_callbacks callbacks;
  void *data;
  char found[16];
  bool existing;
  bool handing;
  bool is_replaced;
  bool is_forgotten;  /* not registered yet in a new session */
  bool is_early;      /* its registration has not returned: the program does not have it */
};

struct restoration {
  int fd;
  pid_t pid;  /* of the process that connected it */
  char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
  restoration *next;  /* in `handles` */
  byte_queue in, out;
  json_t *held;      /* messages about an object that is early, and those that followed */
  pending *pending;  /* the newest first */
  served_method *served;
  restoration_answer *on_error;
  void *on_error_data;
  restoration_object *objects;  /* in the order of their registration */
  restoration_object *removed;  /* freed when nobody can be using them */
  json_int_t last_id, last_revision;
  json_t *session;  /* parameters of initialize */
  json_t *token, *found, *limits;
  bool serves_states;
  bool is_fenced;       /* another host has the application: a session that is begun again would take it from there */
  unsigned connection;  /* counts connections: a descriptor's number may be reused */
  unsigned depth;       /* of calls into this handle; nothing is freed while it is positive */
  bool is_closing;
};

/* -- Failures --------------------------------------------------------------------------------------------------- */

/* Copies what fits, without splitting a character. */
static void copy_text(char *to, size_t size, const char *from) {
  size_t length = strlen(from);
  if (length >= size) {
    length = size - 1;
    while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) length--;
  }
  memcpy(to, from, length);
  to[length] = 0;
}

static const char *kind_of(int code) {
  switch (code) {
    case RESTORATION_NO_BROKER: return "noBroker";
    case RESTORATION_LOST: return "connectionLost";
    case RESTORATION_TIMED_OUT: return "callTimedOut";
    case RESTORATION_NO_MEMORY: return "noMemory";
    case RESTORATION_MISUSE: return "misuse";
    case RESTORATION_UNREADABLE: return "unreadable";
    case RESTORATION_FORKED: return "forked";
    case RESTORATION_DUPLICATE: return "duplicateObject";
    case RESTORATION_DISCARDED: return "discarded";
    case RESTORATION_FENCED: return "fenced";
    default: return "";
  }
}

__attribute__((format(printf, 3, 4)))
static void fail(restoration_failure *failure, int code, const char *format, ...) {
  if (!failure) return;
  char text[sizeof failure->message * 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  memset(failure, 0, sizeof *failure);
  failure->code = code;
  copy_text(failure->kind, sizeof failure->kind, kind_of(code));
  copy_text(failure->message, sizeof failure->message, text);
  if (code == RESTORATION_NO_BROKER)
    copy_text(failure->hint, sizeof failure->hint,
              "Start it with `restorationd` or `systemctl --user start restorationd.socket`.");
  if (code == RESTORATION_MISUSE)
    copy_text(failure->hint, sizeof failure->hint, "Change the call; restoration.h says what it takes.");
}

static void out_of_memory(restoration_failure *failure) {
  fail(failure, RESTORATION_NO_MEMORY, "there is no memory left");
}

/* In a forked child the connection belongs to the parent. */
static bool is_inherited(const restoration *handle) { return handle->pid != getpid(); }

static void lost(const restoration *handle, restoration_failure *failure) {
  if (is_inherited(handle))
    fail(failure, RESTORATION_FORKED, "the handle belongs to the process that forked this one; open another one here");
  else
    fail(failure, RESTORATION_LOST, "the broker on %s closed the connection or ended", handle->socket);
}

static void fenced(restoration_failure *failure) {
  fail(failure, RESTORATION_FENCED, "another host has the application, and the session has ended");
  if (failure)
    copy_text(failure->hint, sizeof failure->hint, "Continue there, or begin a session when the user is back.");
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

/* Reads an error of the broker, which may have any form. */
static void refused(restoration_failure *failure, const json_t *error) {
  const json_t *data = json_object_get(error, "data");
  const json_t *path = json_object_get(data, "path");
  json_int_t code = json_integer_value(json_object_get(error, "code"));
  memset(failure, 0, sizeof *failure);
  failure->code = code >= INT_MIN && code <= INT_MAX ? (int)code : 0;
  copy_text(failure->kind, sizeof failure->kind, text_of(data, "kind"));
  copy_text(failure->message, sizeof failure->message, text_of(error, "message"));
  copy_text(failure->hint, sizeof failure->hint, text_of(data, "hint"));
  size_t used = 0;
  for (size_t i = 0; i < json_array_size(path) && used + 2 < sizeof failure->path; i++) {
    const char *component = json_string_value(json_array_get(path, i));
    if (i > 0) failure->path[used++] = '/';
    copy_text(failure->path + used, sizeof failure->path - used, component ? component : "");
    used += strlen(failure->path + used);
  }
}

/* -- Buffers, values and time ----------------------------------------------------------------------------------- */

/* Room for so many bytes after `end`. */
static bool reserve(byte_queue *buffer, size_t count) {
  if (buffer->start > 0 && (buffer->start == buffer->end || buffer->size - buffer->end < count)) {
    size_t rest = buffer->end - buffer->start;
    if (rest > 0) memmove(buffer->bytes, buffer->bytes + buffer->start, rest);
    buffer->searched -= buffer->searched < buffer->start ? buffer->searched : buffer->start;
    buffer->start = 0;
    buffer->end = rest;
  }
  if (buffer->size - buffer->end >= count) return true;
  if (count > SIZE_MAX / 4 || buffer->end > SIZE_MAX / 4) return false;
  size_t size = buffer->size < 4096 ? 4096 : buffer->size;
  while (size - buffer->end < count) size *= 2;
  char *bytes = realloc(buffer->bytes, size);
  if (!bytes) return false;
  buffer->bytes = bytes;
  buffer->size = size;
  return true;
}

static void empty(byte_queue *buffer, size_t kept) {
  buffer->start = buffer->end = buffer->searched = 0;
  if (buffer->size > kept) {
    free(buffer->bytes);
    buffer->bytes = NULL;
    buffer->size = 0;
  }
}

static void replace(json_t **place, json_t *value) {
  json_incref(value);
  json_decref(*place);
  *place = value;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* -- Life of the handle ----------------------------------------------------------------------------------------- */

/* All handles of this process. Each may be another thread's. */
static restoration *handles;
static pthread_mutex_t handles_guard = PTHREAD_MUTEX_INITIALIZER;

static void free_object(restoration_object *object) {
  json_decref(object->path);
  json_decref(object->params);
  json_decref(object->unsaved);
  free(object);
}

static void free_objects(restoration_object **list) {
  while (*list) {
    restoration_object *object = *list;
    *list = object->next;
    free_object(object);
  }
}

/* The connection is lost: pending calls are told. Their callbacks may make new calls, which fail at once. */
static void drop(restoration *handle) {
  if (handle->fd >= 0) close(handle->fd);
  handle->fd = -1;
  empty(&handle->in, 0);
  empty(&handle->out, 0);
  json_array_clear(handle->held);
  restoration_failure failure;
  lost(handle, &failure);
  while (handle->pending) {
    pending **place = &handle->pending; /* the oldest first */
    while ((*place)->next) place = &(*place)->next;
    pending *call = *place;
    *place = NULL;
    call->answer(handle, NULL, &failure, call->data);
    free(call);
  }
}

static void enter(restoration *handle) { handle->depth++; }

static void destroy(restoration *handle) {
  pthread_mutex_lock(&handles_guard);
  restoration **place = &handles;
  while (*place && *place != handle) place = &(*place)->next;
  if (*place) *place = handle->next;
  pthread_mutex_unlock(&handles_guard);
  empty(&handle->in, 0);
  empty(&handle->out, 0);
  free_objects(&handle->objects);
  free_objects(&handle->removed);
  while (handle->served) {
    served_method *served = handle->served;
    handle->served = served->next;
    free(served);
  }
  json_decref(handle->held);
  json_decref(handle->session);
  json_decref(handle->token);
  json_decref(handle->found);
  json_decref(handle->limits);
  free(handle);
}

/* The handle may be freed afterwards. */
static void leave(restoration *handle) {
  if (--handle->depth > 0) return;
  free_objects(&handle->removed);
  if (handle->is_closing) destroy(handle);
}

void restoration_close(restoration *handle) {
  if (!handle) return;
  enter(handle);
  handle->is_closing = true;
  drop(handle);
  leave(handle);
}

/* -- Connecting ------------------------------------------------------------------------------------------------- */

bool restoration_default_socket(char *path, size_t size) {
  const char *named = getenv("RESTORATIOND_SOCKET");
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  int length;
  if (named && *named) length = snprintf(path, size, "%s", named);
  else if (runtime && *runtime) length = snprintf(path, size, "%s/restorationd/broker.sock", runtime);
  else length = snprintf(path, size, "/run/user/%lu/restorationd/broker.sock", (unsigned long)getuid());
  return length >= 0 && (size_t)length < size;
}

/* One attempt; returns 0 or errno. */
static int connect_once(restoration *handle) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, handle->socket, strlen(handle->socket) + 1);
  if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
    int error = errno;
    close(fd);
    return error;
  }
  handle->fd = fd;
  handle->pid = getpid();
  handle->connection++;
  return 0;
}

static void unreachable(const restoration *handle, int error, restoration_failure *failure) {
  const char *socket = handle->socket;
  struct stat status;
  switch (error) {
    case ENOENT: fail(failure, RESTORATION_NO_BROKER, "no broker listens on %s", socket); break;
    case ECONNREFUSED:
      fail(failure, RESTORATION_NO_BROKER, "no broker listens on %s any more", socket);
      if (!failure || stat(socket, &status) < 0 || S_ISSOCK(status.st_mode)) break;
      snprintf(failure->message, sizeof failure->message, "%s is not a socket", socket);
      copy_text(failure->hint, sizeof failure->hint, "Name the socket of the broker.");
      break;
    case EACCES:
      fail(failure, RESTORATION_NO_BROKER, "this user may not connect to %s", socket);
      if (failure) copy_text(failure->hint, sizeof failure->hint, "Every user has their own broker: name its socket.");
      break;
    case EAGAIN: fail(failure, RESTORATION_NO_BROKER, "the broker on %s takes no connection", socket); break;
    default: fail(failure, RESTORATION_NO_BROKER, "cannot connect to %s: %s", socket, strerror(error)); break;
  }
}

/* Tries at least once, until the deadline. */
static int connect_until(restoration *handle, int64_t end, bool is_patient, restoration_failure *failure) {
  int pause = 10;
  for (;;) {
    int error = connect_once(handle);
    if (!error) return 0;
    bool may_pass = error == EAGAIN || error == EINTR || (is_patient && (error == ENOENT || error == ECONNREFUSED));
    if (!may_pass || now() + pause > end) {
      unreachable(handle, error, failure);
      return -1;
    }
    poll(NULL, 0, pause);
    pause = pause < 250 ? pause * 2 : 500;
  }
}

restoration *restoration_open(const char *socket, restoration_failure *failure) {
  restoration *handle = calloc(1, sizeof *handle);
  if (!handle || !(handle->held = json_array())) {
    free(handle);
    out_of_memory(failure);
    return NULL;
  }
  handle->fd = -1;
  bool fits;
  if (socket) {
    int length = snprintf(handle->socket, sizeof handle->socket, "%s", socket);
    fits = length >= 0 && (size_t)length < sizeof handle->socket;
  } else {
    fits = restoration_default_socket(handle->socket, sizeof handle->socket);
  }
  if (!fits) fail(failure, RESTORATION_MISUSE, "the path of the socket has more than 107 bytes: %s...", handle->socket);
  if (fits && !*handle->socket) {
    fits = false;
    fail(failure, RESTORATION_MISUSE, "the path of the socket is empty: give one, or NULL for the default");
  }
  if (!fits || connect_until(handle, now() + 5000, false, failure) < 0) {
    destroy(handle);
    return NULL;
  }
  pthread_mutex_lock(&handles_guard);
  handle->next = handles;
  handles = handle;
  pthread_mutex_unlock(&handles_guard);
  return handle;
}

int restoration_fd(const restoration *handle) { return is_inherited(handle) ? -1 : handle->fd; }

short restoration_events(const restoration *handle) {
  return handle->out.start < handle->out.end ? POLLIN | POLLOUT : POLLIN;
}

/* -- Writing ---------------------------------------------------------------------------------------------------- */

/* Levels, values, and the most keys of one object, as the broker counts them. */
typedef struct measure {
  size_t depth, values, keys;
} measure;

static void measure_value(const json_t *value, size_t depth, measure *measured) {
  measured->values++;
  size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
  if (!json_is_object(value) && !json_is_array(value)) return;
  if (++depth > measured->depth) measured->depth = depth;
  if (depth >= write_depth || measured->values > write_values) return;
  if (json_is_array(value)) {
    for (size_t i = 0; i < count; i++) measure_value(json_array_get(value, i), depth, measured);
    return;
  }
  if (count > measured->keys) measured->keys = count;
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)(uintptr_t)value, key, member) measure_value(member, depth, measured);
}

static size_t limit(const restoration *handle, const char *name, size_t usual) {
  json_int_t most = json_integer_value(json_object_get(handle->limits, name));
  return most > 0 ? (size_t)most : usual;
}

static bool is_beyond(
    const restoration *handle, const char *name, size_t usual, size_t value, restoration_failure *failure) {
  size_t most = limit(handle, name, usual);
  if (value <= most) return false;
  fail(failure, -32008, "a message is beyond %s: %zu, and %zu at most", name, value, most);
  if (failure) {
    copy_text(failure->kind, sizeof failure->kind, "limitExceeded");
    copy_text(failure->hint, sizeof failure->hint,
              "Send less, or raise the limit in the broker's configuration.");
  }
  return true;
}

/* Queues a message. The broker could not tell which call an unreadable message is, so limits are checked here. */
static int put(restoration *handle, const json_t *message, restoration_failure *failure) {
  if (restoration_fd(handle) < 0) {
    lost(handle, failure);
    return -1;
  }
  measure measured = {0, 0, 0};
  measure_value(message, 0, &measured);
  if (is_beyond(handle, "depthMax", 64, measured.depth, failure)
      || is_beyond(handle, "valuesPerFrameMax", 65536, measured.values, failure)
      || is_beyond(handle, "keysPerObjectMax", 4096, measured.keys, failure))
    return -1;
  size_t size = json_dumpb(message, NULL, 0, JSON_COMPACT);
  if (size == 0) {
    fail(failure, RESTORATION_MISUSE, "the parameters are no JSON");
    return -1;
  }
  if (is_beyond(handle, "frameBytesMax", 4 << 20, size, failure)) return -1;
  if (!reserve(&handle->out, size + 1)) {
    out_of_memory(failure);
    return -1;
  }
  json_dumpb(message, handle->out.bytes + handle->out.end, size, JSON_COMPACT);
  handle->out.end += size;
  handle->out.bytes[handle->out.end++] = '\n';
  return 0;
}

/* Writes what can be written now. 0, or -1 if the connection is lost. */
static int flush(restoration *handle) {
  if (is_inherited(handle)) return -1;
  byte_queue *out = &handle->out;
  while (handle->fd >= 0 && out->start < out->end) {
    ssize_t count = send(handle->fd, out->bytes + out->start, out->end - out->start, MSG_NOSIGNAL);
    if (count >= 0) out->start += (size_t)count;
    else if (errno == EAGAIN) return 0;
    else if (errno != EINTR) return -1;
  }
  if (out->start == out->end) empty(out, kept_bytes);
  return handle->fd < 0 ? -1 : 0;
}

/* -- Calls ------------------------------------------------------------------------------------------------------ */

static json_int_t send_call(
    restoration *handle, const char *method, json_t *params, restoration_answer *answer, void *data,
    restoration_failure *failure) {
  if (!params) {
    fail(failure, RESTORATION_MISUSE, "the parameters of %s are NULL: json_pack has failed", method);
    return 0;
  }
  pending *call = calloc(1, sizeof *call);
  json_t *message = json_pack(
      "{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id", handle->last_id + 1, "method", method, "params", params);
  if (!call || !message) {
    free(call);
    json_decref(message);
    out_of_memory(failure);
    return 0;
  }
  int result = put(handle, message, failure);
  json_decref(message);
  if (result < 0) {
    free(call);
    return 0;
  }
  *call = (pending){handle->pending, ++handle->last_id, answer, data};
  handle->pending = call;
  return call->id;
}

json_int_t restoration_send(
    restoration *handle, const char *method, json_t *params, restoration_answer *answer, void *data,
    restoration_failure *failure) {
  json_int_t id = send_call(handle, method, params, answer, data, failure);
  if (id) flush(handle); /* the next dispatch reports a loss */
  return id;
}

void restoration_cancel(restoration *handle, json_int_t id) {
  restoration_notify(handle, "$/cancelRequest", json_pack("{s:I}", "id", id), NULL);
}

int restoration_notify(restoration *handle, const char *method, json_t *params, restoration_failure *failure) {
  if (!params) {
    fail(failure, RESTORATION_MISUSE, "the parameters of %s are NULL: json_pack has failed", method);
    return -1;
  }
  json_t *message = json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method", method, "params", params);
  if (!message) {
    out_of_memory(failure);
    return -1;
  }
  int result = put(handle, message, failure);
  json_decref(message);
  if (result == 0) flush(handle);
  return result;
}

/* A call of this process that blocks. */
typedef struct outcome {
  json_t *result;
  restoration_failure failure;
  bool is_done;
} outcome;

static void take_waited(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  outcome *waiting = data;
  waiting->is_done = true;
  waiting->result = json_incref(result);
  if (failure) waiting->failure = *failure;
}

static void take_nothing(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  (void)failure;
  (void)data;
}

static void forget(restoration *handle, json_int_t id) {
  for (pending **place = &handle->pending; *place; place = &(*place)->next) {
    if ((*place)->id != id) continue;
    pending *call = *place;
    *place = call->next;
    free(call);
    return;
  }
}

json_t *restoration_call(
    restoration *handle, const char *method, json_t *params, int milliseconds, restoration_failure *failure) {
  outcome waiting = {NULL, {0}, false};
  enter(handle);
  json_int_t id = restoration_send(handle, method, params, take_waited, &waiting, failure);
  int64_t end = now() + milliseconds;
  while (id && !waiting.is_done) {
    int64_t left = end - now();
    restoration_wait(handle, left > INT_MAX ? INT_MAX : left > 0 ? (int)left : 0);
    if (waiting.is_done || now() < end) continue;
    forget(handle, id);
    restoration_cancel(handle, id);
    fail(&waiting.failure, RESTORATION_TIMED_OUT, "%s was not answered in time", method);
    break;
  }
  if (id && !waiting.result && failure) *failure = waiting.failure;
  leave(handle);
  return waiting.result;
}

/* -- Answers of the broker -------------------------------------------------------------------------------------- */

static void take_answer(restoration *handle, const json_t *message, json_int_t id, const char *unreadable) {
  pending **place = &handle->pending;
  /* An unreadable message is answered without an id: the last message is the likely one. */
  while (id && *place && (*place)->id != id) place = &(*place)->next;
  pending *call = *place;
  if (call) *place = call->next;
  json_t *result = json_object_get(message, "result");
  const json_t *error = json_object_get(message, "error");
  restoration_failure failure;
  if (unreadable) fail(&failure, RESTORATION_UNREADABLE, "the answer cannot be read: %s", unreadable);
  else if (error || !id) refused(&failure, error);
  else if (!result) fail(&failure, RESTORATION_UNREADABLE, "the answer has no result");
  bool failed = unreadable || error || !id || !result;
  if (failed && failure.code == RESTORATION_FENCED) handle->is_fenced = true;
  /* The call is chosen before the callback, which may send others. */
  if (!id && handle->on_error) handle->on_error(handle, NULL, &failure, handle->on_error_data);
  if (!call) return;
  call->answer(handle, failed ? NULL : result, failed ? &failure : NULL, call->data);
  free(call);
}

/* The id of a message that jansson cannot read, and whether it is a call. Knows only strings and brackets. */
static json_int_t rough_id(const char *text, size_t length, bool *is_call) {
  json_int_t id = 0;
  size_t depth = 0;
  *is_call = false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '{' || text[i] == '[') depth++;
    if ((text[i] == '}' || text[i] == ']') && depth > 0) depth--;
    if (text[i] != '"') continue;
    size_t begin = i + 1;
    for (i++; i < length && text[i] != '"'; i++) i += text[i] == '\\';
    if (depth != 1 || i + 1 >= length || text[i + 1] != ':') continue;
    if (i - begin == 6 && memcmp(text + begin, "method", 6) == 0) *is_call = true;
    if (i - begin != 2 || memcmp(text + begin, "id", 2) != 0) continue;
    for (size_t digit = i + 2; digit < length && text[digit] >= '0' && text[digit] <= '9' && id < INT32_MAX; digit++)
      id = id * 10 + (text[digit] - '0');
  }
  return id;
}

/* -- Calls of the broker ---------------------------------------------------------------------------------------- */

static restoration_object *object_of(const restoration *handle, json_int_t number) {
  for (restoration_object *object = handle->objects; object && number > 0; object = object->next)
    if (object->number == number) return object;
  return NULL;
}

/* The object's former handle may be another object's now. */
static void give_up(restoration_object *object) {
  object->number = 0;
  object->is_replaced = true;
  object->is_forgotten = false;
}

/* False with `failure` if there is nothing to report to the broker. */
static bool is_known(const restoration_object *object, restoration_failure *failure) {
  if (!object) {
    fail(failure, RESTORATION_MISUSE, "the object is NULL: register it first");
    return false;
  }
  if (object->number > 0) return true;
  if (!object->is_replaced) {
    lost(object->handle, failure);
    return false;
  }
  fail(failure, -32010, "the object is not this session's any more");
  if (failure) {
    copy_text(failure->kind, sizeof failure->kind, "replaced");
    copy_text(failure->hint, sizeof failure->hint, "Stop writing to it, or register it again.");
  }
  return false;
}

static restoration_object *object_named(const restoration *handle, const json_t *entry) {
  return object_of(handle, json_integer_value(json_object_get(entry, "object")));
}

/* The entry of one object: a new reference, or NULL if no memory is left. */
static json_t *encoded_piece(const restoration *handle, json_int_t number) {
  restoration_object *object = object_of(handle, number);
  if (!object) return json_pack("{s:I,s:s}", "object", number, "error", "there is no such object");
  json_t *state = object->callbacks.encode ? object->callbacks.encode(object, object->data) : json_null();
  if (json_is_null(state) && object->unsaved) state = json_incref(object->unsaved);
  if (!state) return json_pack("{s:I,s:s}", "object", number, "error", "the state cannot be encoded");
  if (json_is_null(state)) return json_pack("{s:I,s:b}", "object", number, "unchanged", 1);
  measure measured = {0, 0, 0};
  measure_value(state, 0, &measured);
  restoration_failure failure;
  size_t size = measured.depth < write_depth ? json_dumpb(state, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
  /* The answer adds four levels above a state. */
  if (size == 0 || is_beyond(handle, "depthMax", 64, measured.depth + 4, &failure)
      || is_beyond(handle, "valuesPerFrameMax", 65536, measured.values + 16, &failure)
      || is_beyond(handle, "keysPerObjectMax", 4096, measured.keys, &failure)
      || is_beyond(handle, "frameBytesMax", 4 << 20, size + 256, &failure)) {
    json_decref(state);
    return json_pack("{s:I,s:s}", "object", number, "error", size ? failure.message : "the state is no JSON");
  }
  return json_pack("{s:I,s:o}", "object", number, "state", state);
}

static json_t *answer_encode(restoration *handle, const json_t *params) {
  json_t *objects = json_incref(json_object_get(params, "objects"));
  json_t *states = json_array();
  size_t bytes_max = limit(handle, "frameBytesMax", 4 << 20) / 2, bytes = 0;
  size_t values_max = limit(handle, "valuesPerFrameMax", 65536) / 2, values = 0;
  for (size_t i = 0; states && i < json_array_size(objects); i++) {
    json_int_t number = json_integer_value(json_object_get(json_array_get(objects, i), "object"));
    json_t *piece = encoded_piece(handle, number);
    measure measured = {0, 0, 0};
    if (piece) {
      measure_value(piece, 0, &measured);
      bytes += json_dumpb(piece, NULL, 0, JSON_COMPACT) + 1;
      values += measured.values;
    }
    /* The broker asks again for states that do not fit into half of a frame. */
    if (piece && i > 0 && (bytes > bytes_max || values > values_max)) {
      json_decref(piece);
      piece = json_pack("{s:I,s:b}", "object", number, "later", 1);
    }
    if (!piece || json_array_append_new(states, piece) < 0) {
      json_decref(states);
      states = NULL;
    }
  }
  json_decref(objects);
  return states ? json_pack("{s:o}", "states", states) : NULL;
}

static void take_deferred(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  json_t *number = data;
  restoration_object *object = object_of(handle, json_integer_value(number));
  json_t *state = json_object_get(result, "state");
  json_decref(number);
  if (!failure && object && object->callbacks.decode && json_is_object(state))
    object->callbacks.decode(object, state, object->data);
}

static json_t *answer_decode(restoration *handle, const json_t *params) {
  const json_t *objects = json_object_get(params, "objects");
  for (size_t i = 0; i < json_array_size(objects); i++) {
    const json_t *entry = json_array_get(objects, i);
    restoration_object *object = object_named(handle, entry);
    if (object) replace(&object->unsaved, NULL); /* the program shows another one now */
    if (!object || !object->callbacks.decode) continue;
    json_t *state = json_object_get(entry, "state");
    if (json_is_true(json_object_get(entry, "deferred"))) {
      json_t *number = json_integer(object->number);
      json_t *fetched = json_pack("{s:I}", "object", object->number);
      if (!send_call(handle, "decodeRestorableState", fetched, take_deferred, number, NULL)) json_decref(number);
    } else if (json_is_object(state)) {
      object->callbacks.decode(object, state, object->data);
    }
  }
  return json_object();
}

/* Takes over a path, also for registering again with a broker that has forgotten the session. */
static void take_path(restoration_object *object, json_t *path) {
  size_t count = json_array_size(path);
  const char *last = count ? json_string_value(json_array_get(path, count - 1)) : NULL;
  replace(&object->path, path);
  if (!last) {
    json_object_set_new(object->params, "restorationIdentifier", json_null());
    return;
  }
  const char *sign = strchr(last, '#');
  size_t length = sign ? (size_t)(sign - last) : strlen(last);
  json_object_set_new(object->params, "restorationIdentifier", json_stringn(last, length));
  if (sign) json_object_set_new(object->params, "position", json_integer(strtoll(sign + 1, NULL, 10)));
  else json_object_del(object->params, "position");
  if (object->parent) return;
  json_t *parent = json_copy(path);
  json_array_remove(parent, count - 1);
  if (count > 1) json_object_set(object->params, "restorationParent", parent);
  else json_object_del(object->params, "restorationParent");
  json_decref(parent);
}

/* For people; `is_quoted` if it stands in a word of a shell, between quotes. */
static void print_path(const json_t *path, bool is_quoted) {
  size_t index;
  json_t *component;
  json_array_foreach(path, index, component) {
    if (index > 0) putc('/', stderr);
    for (const char *each = json_string_value(component); each && *each; each++) {
      if (*each == '\'' && is_quoted) fputs("'\\''", stderr);
      else putc(*each, stderr);
    }
  }
}

static void tell_refused(const json_t *path, const char *why) {
  fputs("restoration: the broker has not stored the state of ", stderr);
  if (json_is_array(path)) print_path(path, false);
  else fputs("the application itself", stderr);
  fprintf(stderr, ": %s\n", why);
}

static void take_pushed(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  json_t *number = data;
  const restoration_object *object = object_of(handle, json_integer_value(number));
  (void)result;
  json_decref(number);
  if (object && failure && failure->code != RESTORATION_LOST) tell_refused(object->path, failure->message);
}

/* The broker stores from now on what it did not store when it was pushed. */
static void push_unsaved(restoration_object *object) {
  json_t *params = json_pack(
      "{s:I,s:O,s:I}", "object", object->number, "state", object->unsaved, "revision",
      ++object->handle->last_revision);
  json_t *number = json_integer(object->number);
  if (!send_call(object->handle, "encodeRestorableState", params, take_pushed, number, NULL)) json_decref(number);
  else replace(&object->unsaved, NULL);
}

static void take_notification(restoration *handle, const char *method, const json_t *params) {
  restoration_object *object = object_named(handle, params);
  if (object && strcmp(method, "pathChanged") == 0 && json_object_get(params, "path")) {
    take_path(object, json_object_get(params, "path"));
  } else if (object && strcmp(method, "registrationReplaced") == 0) {
    give_up(object);
  } else if (object && object->unsaved && strcmp(method, STATE_WANTED) == 0) {
    push_unsaved(object);
  } else if (strcmp(method, "encodeFailed") == 0) {
    tell_refused(json_object_get(params, "path"), text_of(json_object_get(params, "error"), "kind"));
  } else if (strcmp(method, ARCHIVE_LOST) == 0) {
    handle->is_fenced = true;
  } else if (strcmp(method, FINISHED) == 0) {
    const json_t *objects = json_object_get(params, "objects");
    for (size_t i = 0; i < json_array_size(objects); i++) {
      restoration_object *each = object_of(handle, json_integer_value(json_array_get(objects, i)));
      if (each && each->callbacks.finished) each->callbacks.finished(each, each->data);
    }
  }
}

static json_t *answer_call(
    restoration *handle, const served_method *served, const char *method, json_t *params) {
  if (served) return served->handler(handle, method, params, served->data);
  if (handle->serves_states && strcmp(method, ENCODE) == 0) return answer_encode(handle, params);
  if (handle->serves_states && strcmp(method, DECODE) == 0) return answer_decode(handle, params);
  return NULL;
}

static void reply(restoration *handle, json_t *id, json_t *result, const char *why) {
  json_t *message = result
      ? json_pack("{s:s,s:O,s:O}", "jsonrpc", "2.0", "id", id, "result", result)
      : json_pack("{s:s,s:O,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", -32603, "message", why);
  restoration_failure failure;
  if (message && put(handle, message, &failure) < 0 && result && handle->fd >= 0)
    reply(handle, id, NULL, failure.message);
  json_decref(message);
}

static void take_call(restoration *handle, json_t *id, const char *method, json_t *params) {
  unsigned connection = handle->connection;
  const served_method *served = handle->served;
  while (served && strcmp(served->method, method) != 0) served = served->next;
  if (!id) {
    take_notification(handle, method, params);
    if (served) json_decref(served->handler(handle, method, params, served->data));
    return;
  }
  json_t *result = answer_call(handle, served, method, params);
  /* If a callback has lost, closed or resumed the connection, this answer is not awaited. */
  if (handle->fd >= 0 && handle->connection == connection) reply(handle, id, result, "it is not served, or failed");
  json_decref(result);
}

/* -- Reading ---------------------------------------------------------------------------------------------------- */

static bool names_early(const restoration *handle, const json_t *named) {
  const restoration_object *object =
      object_of(handle, json_integer_value(json_is_object(named) ? json_object_get(named, "object") : named));
  return object && object->is_early;
}

/* Whether a message is about an object that the program does not have yet. */
static bool is_early(const restoration *handle, const json_t *message) {
  const json_t *params = json_object_get(message, "params"), *objects = json_object_get(params, "objects");
  for (size_t i = 0; i < json_array_size(objects); i++)
    if (names_early(handle, json_array_get(objects, i))) return true;
  return names_early(handle, params);
}

static void take_message(restoration *handle, json_t *message) {
  json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
  take_call(handle, id, json_string_value(json_object_get(message, "method")), params);
}

/* An early message waits, and so do those that follow it, except answers. */
static void take_line(restoration *handle, json_t *message) {
  const json_t *id = json_object_get(message, "id");
  if (json_is_string(json_object_get(message, "method"))) {
    if (json_array_size(handle->held) > 0 || is_early(handle, message)) json_array_append(handle->held, message);
    else take_message(handle, message);
  } else if (json_is_integer(id) || json_is_null(id)) {
    take_answer(handle, message, json_integer_value(id), NULL);
  }
}

static void take_held(restoration *handle) {
  while (json_array_size(handle->held) > 0 && !is_early(handle, json_array_get(handle->held, 0))) {
    json_t *message = json_incref(json_array_get(handle->held, 0));
    json_array_remove(handle->held, 0);
    take_message(handle, message);
    json_decref(message);
  }
}

/* Handles all complete lines. A callback may change everything. */
static void take_lines(restoration *handle) {
  byte_queue *in = &handle->in;
  take_held(handle);
  while (restoration_fd(handle) >= 0 && in->start < in->end) {
    size_t from = in->searched > in->start ? in->searched : in->start;
    const char *line = in->bytes + in->start;
    const char *feed = memchr(in->bytes + from, '\n', in->end - from);
    if (!feed) {
      in->searched = in->end;
      return;
    }
    size_t length = (size_t)(feed - line);
    json_error_t error;
    json_t *message = json_loadb(line, length, JSON_ALLOW_NUL, &error);
    bool is_call = false;
    json_int_t id = message ? 0 : rough_id(line, length, &is_call);
    in->start += length + 1;
    if (in->start == in->end) empty(in, kept_bytes);
    if (message) {
      take_line(handle, message);
      json_decref(message);
    } else if (id && is_call) {
      json_t *number = json_integer(id);
      reply(handle, number, NULL, error.text);
      json_decref(number);
    } else if (id) {
      take_answer(handle, NULL, id, error.text);
    }
  }
}

/* Reads what is there, up to a limit, so that the program can do other work. 0, or -1 at the end. */
static int fill(restoration *handle) {
  for (int i = 0; i < reads_per_dispatch && handle->fd >= 0; i++) {
    byte_queue *in = &handle->in;
    if (in->end - in->start > line_bytes_max || !reserve(in, read_bytes)) return -1;
    ssize_t count = recv(handle->fd, in->bytes + in->end, in->size - in->end, 0);
    if (count == 0) return -1;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? 0 : -1;
    in->end += (size_t)count;
  }
  return 0;
}

int restoration_dispatch(restoration *handle) {
  enter(handle);
  if (is_inherited(handle)) drop(handle);
  if (handle->fd >= 0) {
    unsigned connection = handle->connection;
    int written = flush(handle);
    int read = fill(handle);
    take_lines(handle);
    if (handle->connection == connection && (written < 0 || read < 0 || flush(handle) < 0)) drop(handle);
  }
  int result = handle->fd < 0 ? -1 : 0;
  leave(handle);
  return result;
}

int restoration_wait(restoration *handle, int milliseconds) {
  if (restoration_fd(handle) < 0) return restoration_dispatch(handle);
  struct pollfd polled = {handle->fd, restoration_events(handle), 0};
  int count = poll(&polled, 1, milliseconds);
  if (count <= 0) return 0;
  return restoration_dispatch(handle) < 0 ? -1 : 1;
}

/* -- Session ---------------------------------------------------------------------------------------------------- */

int restoration_serve(restoration *handle, const char *method, restoration_handler *handler, void *data) {
  size_t size = strlen(method) + 1;
  served_method *served = calloc(1, sizeof *served + size);
  if (!served) return -1;
  served->next = handle->served;
  served->handler = handler;
  served->data = data;
  memcpy(served->method, method, size);
  handle->served = served;
  return 0;
}

void restoration_on_error(restoration *handle, restoration_answer *told, void *data) {
  handle->on_error = told;
  handle->on_error_data = data;
}

static json_t *serves(const restoration *handle) {
  json_t *names = json_pack("[ssss]", "pathChanged", "registrationReplaced", ARCHIVE_LOST, STATE_WANTED);
  static const char *const states[] = {ENCODE, DECODE, FINISHED};
  for (size_t i = 0; handle->serves_states && i < 3; i++) json_array_append_new(names, json_string(states[i]));
  for (const served_method *served = handle->served; served; served = served->next)
    json_array_append_new(names, json_string(served->method));
  return names;
}

/* Calls `initialize`. 1 if the session is the requested one, 0 if it is another one, -1 with `failure`. */
static int initialize(restoration *handle, int milliseconds, restoration_failure *failure) {
  json_t *params = json_copy(handle->session);
  if (!params || (handle->token && json_object_set(params, "session", handle->token) < 0)) {
    json_decref(params);
    out_of_memory(failure);
    return -1;
  }
  json_t *result = restoration_call(handle, "initialize", params, milliseconds, failure);
  if (!result) return -1;
  json_t *token = json_object_get(result, "session");
  if (!json_is_string(token)) {
    fail(failure, RESTORATION_UNREADABLE, "the answer has no session");
    json_decref(result);
    return -1;
  }
  bool is_same = !handle->token || json_equal(handle->token, token);
  replace(&handle->token, token);
  replace(&handle->found, json_object_get(result, "restoration"));
  replace(&handle->limits, json_object_get(result, "limits"));
  /* The broker has chosen the instance for `auto`. */
  json_t *application = json_object_get(result, "application");
  if (application) json_object_set(handle->session, "application", application);
  json_object_del(handle->session, "instance");
  json_object_del(handle->session, "takeOver");
  handle->is_fenced = false;
  json_decref(result);
  return is_same ? 1 : 0;
}

/* A program that ends by itself has not crashed (R30). What fails has a status of its own, which counts (R31). */
static void say_goodbyes(int status, void *data) {
  (void)data;
  if (status != 0 || pthread_mutex_trylock(&handles_guard) != 0) return;
  for (restoration *each = handles; each; each = each->next)
    if (each->token && each->depth == 0 && !is_inherited(each))
      restoration_notify(each, "goodbye", json_pack("{s:s}", "reason", "restart"), NULL);
  pthread_mutex_unlock(&handles_guard);
}

static void say_goodbyes_at_exit(void) {
  /* A plugin that is unloaded takes its code along, unless it is told to stay. */
  Dl_info here;
  if (dladdr(&handles, &here)) dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  on_exit(say_goodbyes, NULL);
}

int restoration_begin(
    restoration *handle, const restoration_session *session, int milliseconds, restoration_failure *failure) {
  if (!session->application) {
    fail(failure, RESTORATION_MISUSE, "application is NULL: give a name such as org.example.Note");
    return -1;
  }
  json_t *params = session->more ? json_copy(session->more) : json_object();
  handle->serves_states = session->serves_states;
  int faults = !params || json_object_set_new(params, "application", json_string(session->application));
  if (session->process) faults |= json_object_set_new(params, "process", json_string(session->process));
  const char *unit = getenv("RESTORATION_UNIT");
  if (unit && *unit && params && !json_object_get(params, "storyboard")) {
    faults |= json_object_set_new(params, "storyboard", json_pack("{ss}", "unit", unit));
  }
  faults |= json_object_set_new(params, "serves", serves(handle));
  if (faults) {
    json_decref(params);
    fail(failure, RESTORATION_MISUSE, "application and process have to be UTF-8");
    return -1;
  }
  json_decref(handle->session);
  handle->session = params;
  json_decref(handle->token);
  handle->token = session->token ? json_string(session->token) : NULL;
  /* In a resumed session another process may have used small revisions. */
  if (session->token && handle->last_revision == 0) handle->last_revision = (json_int_t)time(NULL) * 1000000;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, say_goodbyes_at_exit);
  enter(handle);
  int result = initialize(handle, milliseconds, failure);
  leave(handle);
  return result < 0 ? -1 : 0;
}

const char *restoration_token(const restoration *handle) { return json_string_value(handle->token); }
const json_t *restoration_found(const restoration *handle) { return handle->found; }
const json_t *restoration_limits(const restoration *handle) { return handle->limits; }

static bool is_discarded(const json_t *result) { return json_is_true(json_object_get(result, "discarded")); }

/* An answer without what the call is to give. */
static int fail_without(const char *what, const json_t *result, restoration_failure *failure) {
  if (is_discarded(result))
    fail(failure, RESTORATION_DISCARDED, "the user has quit the application; end this session and open another one");
  else
    fail(failure, RESTORATION_UNREADABLE, "the answer has no %s", what);
  return -1;
}

static int take_registration(restoration_object *object, const json_t *result, restoration_failure *failure) {
  json_t *path = json_object_get(result, "path");
  json_int_t number = json_integer_value(json_object_get(result, "object"));
  if (number <= 0 || !path) return fail_without("object", result, failure);
  object->number = number;
  replace(&object->path, path);
  copy_text(object->found, sizeof object->found, text_of(json_object_get(result, "restoration"), "state"));
  object->existing = json_is_true(json_object_get(result, "existing"));
  object->handing = json_is_true(json_object_get(json_object_get(result, "restoration"), "handing"));
  object->is_replaced = false;
  return 0;
}

static void forget_objects(restoration *handle) {
  for (restoration_object *each = handle->objects; each; each = each->next) {
    each->number = 0;
    each->is_forgotten = !each->is_replaced;
  }
}

/* Its depth, counting only known parents. */
static size_t level(const restoration_object *object) {
  if (json_is_array(object->path)) return json_array_size(object->path);
  return json_array_size(json_object_get(object->params, "restorationParent")) + 1;
}

/* The next object to register again: parents come before objects that were moved below them later. */
static restoration_object *next_forgotten(const restoration *handle) {
  restoration_object *next = NULL;
  bool next_waits = false;
  for (restoration_object *each = handle->objects; each; each = each->next) {
    if (!each->is_forgotten) continue;
    bool waits = each->parent && each->parent->is_forgotten;
    if (next && (waits > next_waits || (waits == next_waits && level(each) >= level(next)))) continue;
    next = each;
    next_waits = waits;
  }
  return next;
}

/* Names the parent as the new session knows it. False if it has no name there. */
static bool name_parent(restoration_object *object) {
  const restoration_object *parent = object->parent;
  if (!parent) return true;
  if (parent->number > 0)
    return json_object_set_new(object->params, "restorationParent", json_integer(parent->number)) == 0;
  /* Another session may have registered it. */
  return json_is_array(parent->path) && json_object_set(object->params, "restorationParent", parent->path) == 0;
}

/* In a new session every object is registered again. After another loss, the rest follows over the next connection. */
static void register_again(restoration *handle, int milliseconds) {
  restoration_object *object;
  restoration_failure failure = {0};
  int endings = 0;
  /* Searched each time, because a callback may have changed the list. */
  while (handle->fd >= 0 && (object = next_forgotten(handle))) {
    json_t *params = name_parent(object) ? json_deep_copy(object->params) : NULL;
    json_object_del(params, "fresh");  /* by now it has been saved, or is not new */
    json_t *result =
        restoration_call(handle, "registerObjectForStateRestoration", params, milliseconds, &failure);
    if (!result && handle->fd < 0) return;
    /* If the connection stays, the next broker reads the call there. */
    if (!result && strcmp(failure.kind, "shuttingDown") == 0 && ++endings < 8) continue;
    object->is_forgotten = false;
    if (!result || take_registration(object, result, NULL) < 0) give_up(object);
    json_decref(result);
  }
}

int restoration_resume(restoration *handle, int milliseconds, restoration_failure *failure) {
  if (is_inherited(handle)) {
    lost(handle, failure);
    return -1;
  }
  if (handle->is_fenced) {
    drop(handle);
    fenced(failure);
    return -1;
  }
  int64_t end = now() + milliseconds;
  int patience = milliseconds > 1000 ? milliseconds : 1000;
  int result;
  bool is_new = false;
  enter(handle);
  do {
    drop(handle);
    result = -1;
    lost(handle, failure);
    if (handle->is_closing || connect_until(handle, end, true, failure) < 0) break;
    result = handle->session ? initialize(handle, patience, failure) : 1;
    if (result == 0) {
      is_new = true;
      forget_objects(handle);
    }
    if (result >= 0) register_again(handle, patience);
  } while (handle->fd < 0 && now() < end);
  if (result >= 0 && handle->fd < 0) {
    lost(handle, failure);
    result = -1;
  }
  /* A connection without the session is useless. */
  if (result < 0) drop(handle);
  leave(handle);
  return is_new && result > 0 ? 0 : result;
}

static void remove_object(restoration_object *object) {
  restoration *handle = object->handle;
  restoration_object **place = &handle->objects;
  while (*place && *place != object) place = &(*place)->next;
  if (*place) *place = object->next;
  for (restoration_object *each = handle->objects; each; each = each->next)
    if (each->parent == object) {
      json_object_set(each->params, "restorationParent", object->path);
      each->parent = NULL;
    }
  object->next = handle->removed;
  handle->removed = object;
}

int restoration_goodbye(
    restoration *handle, const char *reason, int milliseconds, restoration_failure *failure) {
  enter(handle);
  json_t *result =
      restoration_call(handle, "goodbye", json_pack("{s:s}", "reason", reason), milliseconds, failure);
  if (result) {
    while (handle->objects) remove_object(handle->objects);
    json_decref(handle->session);
    json_decref(handle->token);
    handle->session = handle->token = NULL;
  }
  json_decref(result);
  leave(handle);
  return result ? 0 : -1;
}

/* -- Objects ---------------------------------------------------------------------------------------------------- */

static bool has_callbacks(const restoration_object *object) {
  return object->callbacks.encode || object->callbacks.decode || object->callbacks.finished;
}

/* A pending registration. Its object exists before the next message is read. */
typedef struct registration {
  restoration_object *object;
  restoration_failure failure;
  bool is_done;
} registration;

/* Whether the program has registered two objects of its own under one path. */
static bool is_another(const restoration_object *known, const restoration_object *object) {
  if (known->is_replaced || !has_callbacks(known) || !has_callbacks(object)) return false;
  return known->data != object->data || known->callbacks.encode != object->callbacks.encode
      || known->callbacks.decode != object->callbacks.decode || known->callbacks.finished != object->callbacks.finished;
}

/* Whoever runs the program is told that there is a state that it is not given (R35). */
static void tell_withheld(const restoration_object *object) {
  fputs("restoration: the saved state of ", stderr);
  print_path(object->path, false);
  fprintf(stderr, " is withheld, because its process failed when it was given it; to release it: "
                  "restorationctl quarantine release %s '", text_of(object->handle->session, "application"));
  print_path(object->path, true);
  fputs("'\n", stderr);
}

static void take_object(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  registration *registering = data;
  restoration_object *object = registering->object;
  registering->is_done = true;
  registering->object = NULL;
  if (failure) registering->failure = *failure;
  if (failure || take_registration(object, result, &registering->failure) < 0) {
    free_object(object);
    return;
  }
  if (strcmp(object->found, "quarantined") == 0 && !object->existing) tell_withheld(object);
  restoration_object *known = object_of(handle, object->number);
  for (restoration_object *each = handle->objects; each && !known; each = each->next)
    if (each->is_replaced && json_is_array(each->path) && json_equal(each->path, object->path)) known = each;
  if (known && is_another(known, object)) {
    char *path = json_dumps(known->path, JSON_COMPACT | JSON_ENCODE_ANY);
    fail(&registering->failure, RESTORATION_DUPLICATE, "this process has registered another object as %s",
         path ? path : "this one");
    copy_text(registering->failure.hint, sizeof registering->failure.hint,
              "Give one of them another identifier or position, or unregister the first one.");
    free(path);
    free_object(object);
    return;
  }
  if (known) {
    known->number = object->number;
    replace(&known->path, object->path);
    replace(&known->params, object->params);
    known->parent = object->parent;
    if (has_callbacks(object) || !has_callbacks(known)) {
      known->callbacks = object->callbacks;
      known->data = object->data;
    }
    memcpy(known->found, object->found, sizeof known->found);
    known->existing = object->existing;
    known->handing = object->handing;
    known->is_replaced = false;
    free_object(object);
    registering->object = known;
    return;
  }
  restoration_object **place = &handle->objects;
  while (*place) place = &(*place)->next;
  *place = object;
  object->is_early = true;
  registering->object = object;
}

restoration_object *restoration_register(
    restoration *handle, json_t *params, const restoration_callbacks *callbacks, void *data, int milliseconds,
    restoration_failure *failure) {
  restoration_object *object = calloc(1, sizeof *object);
  if (!object || !params || (callbacks && !handle->serves_states)) {
    if (!params) fail(failure, RESTORATION_MISUSE, "the parameters are NULL: json_pack has failed");
    else if (!object) out_of_memory(failure);
    else fail(failure, RESTORATION_MISUSE, "callbacks are called only where the session serves states");
    free(object);
    json_decref(params);
    return NULL;
  }
  object->handle = handle;
  object->params = params;
  if (callbacks) object->callbacks = *callbacks;
  object->data = data;
  json_t *parent = json_object_get(params, "restorationParent");
  if (json_is_integer(parent)) object->parent = object_of(handle, json_integer_value(parent));

  registration registering = {object, {0}, false};
  enter(handle);
  json_int_t id = restoration_send(
      handle, "registerObjectForStateRestoration", json_deep_copy(params), take_object, &registering, failure);
  if (!id) free_object(object);
  int64_t end = now() + milliseconds;
  while (id && !registering.is_done) {
    int64_t left = end - now();
    restoration_wait(handle, left > 0 ? (int)left : 0);
    if (registering.is_done || now() < end) continue;
    forget(handle, id);
    restoration_cancel(handle, id);
    free_object(object);
    registering.object = NULL;
    fail(&registering.failure, RESTORATION_TIMED_OUT, "registerObjectForStateRestoration was not answered in time");
    break;
  }
  restoration_object *result = id ? registering.object : NULL;
  if (id && !result && failure) *failure = registering.failure;
  if (result) result->is_early = false;
  /* Its answer makes the descriptor readable, if the program waits for that. */
  if (json_array_size(handle->held) > 0) restoration_send(handle, "ping", json_object(), take_nothing, NULL, NULL);
  leave(handle);
  return result;
}

static json_int_t number_of(const restoration_object *object) { return object ? object->number : 0; }

/* A call that gives an object another path. */
static int move_object(
    restoration_object *object, const char *method, json_t *params, restoration_object *parent, int milliseconds,
    restoration_failure *failure) {
  if (!is_known(object, failure)) {
    json_decref(params);
    return -1;
  }
  restoration *handle = object->handle;
  enter(handle);
  json_t *result = restoration_call(handle, method, params, milliseconds, failure);
  json_t *path = json_object_get(result, "path");
  bool has_moved = path != NULL;
  if (has_moved) {
    object->parent = parent;
    take_path(object, path);
  } else if (result) {
    fail_without("path", result, failure);
  }
  json_decref(result);
  leave(handle);
  return has_moved ? 0 : -1;
}

int restoration_rename(
    restoration_object *object, const char *identifier, int position, int milliseconds,
    restoration_failure *failure) {
  json_t *params = json_pack("{s:I,s:s?}", "object", number_of(object), "restorationIdentifier", identifier);
  if (params && position >= 0) json_object_set_new(params, "position", json_integer(position));
  restoration_object *parent = object ? object->parent : NULL;
  return move_object(object, "setRestorationIdentifier", params, parent, milliseconds, failure);
}

int restoration_move(
    restoration_object *object, json_t *parent, int milliseconds, restoration_failure *failure) {
  restoration_object *own =
      object && json_is_integer(parent) ? object_of(object->handle, json_integer_value(parent)) : NULL;
  json_t *params = json_pack("{s:I,s:o}", "object", number_of(object), "restorationParent", parent);
  return move_object(object, "setRestorationParent", params, own, milliseconds, failure);
}

json_t *restoration_made(const restoration_object *object) {
  return object && object->number ? json_pack("{s:I}", "object", object->number) : json_null();
}

json_t *restoration_awaited(void) { return json_pack("{s:b}", "awaited", true); }
json_t *restoration_pass(void) { return json_pack("{s:b}", "pass", true); }
json_t *restoration_forget(void) { return json_pack("{s:n, s:b}", "object", "forget", true); }

json_int_t restoration_object_handle(const restoration_object *object) { return object->number; }
const json_t *restoration_object_path(const restoration_object *object) { return object->path; }
void *restoration_object_data(const restoration_object *object) { return object->data; }
const char *restoration_object_found(const restoration_object *object) { return object->found; }
bool restoration_object_existing(const restoration_object *object) { return object->existing; }
bool restoration_object_handing(const restoration_object *object) { return object->handing; }
bool restoration_object_is_replaced(const restoration_object *object) { return object->is_replaced; }

json_t *restoration_decode(restoration_object *object, int milliseconds, restoration_failure *failure) {
  if (!is_known(object, failure)) return NULL;
  json_t *params = json_pack("{s:I}", "object", object->number);
  return restoration_call(object->handle, "decodeRestorableState", params, milliseconds, failure);
}

/* Steals target and state. `is_stored` is false if the object is excluded, or the call has failed. */
static int encode(
    restoration *handle, json_t *target, json_t *state, int milliseconds, bool *is_stored,
    restoration_failure *failure) {
  /* One counter for all objects: it grows for each path, even if objects are moved or registered again. */
  json_int_t revision = ++handle->last_revision;
  json_t *params = json_pack("{s:o,s:o,s:I}", "object", target, "state", state, "revision", revision);
  json_t *result = restoration_call(handle, "encodeRestorableState", params, milliseconds, failure);
  *is_stored = result && !json_is_false(json_object_get(result, "included"));
  if (!result) return -1;
  bool was_discarded = is_discarded(result);
  json_decref(result);
  return was_discarded ? 1 : 0;
}

int restoration_encode(
    restoration_object *object, json_t *state, int milliseconds, restoration_failure *failure) {
  if (!is_known(object, failure)) {
    json_decref(state);
    return -1;
  }
  restoration *handle = object->handle;
  bool is_stored;
  enter(handle); /* a callback may unregister the object */
  replace(&object->unsaved, state); /* before the answer, which `stateWanted` may follow at once */
  int result = encode(handle, json_integer(object->number), state, milliseconds, &is_stored, failure);
  if (is_stored || result < 0) replace(&object->unsaved, NULL);
  leave(handle);
  return result;
}

int restoration_encode_application(
    restoration *handle, json_t *state, int milliseconds, restoration_failure *failure) {
  bool is_stored;
  return encode(handle, json_array(), state, milliseconds, &is_stored, failure);
}

int restoration_invalidate(restoration_object *object, restoration_failure *failure) {
  if (!is_known(object, failure)) return -1;
  json_t *params = json_pack("{s:I}", "object", object->number);
  json_int_t id =
      restoration_send(object->handle, "invalidateRestorableState", params, take_nothing, NULL, failure);
  return id ? 0 : -1;
}

int restoration_unregister(restoration_object *object, int milliseconds, restoration_failure *failure) {
  restoration *handle = object ? object->handle : NULL;
  if (object && object->is_replaced) {
    enter(handle);
    remove_object(object);
    leave(handle);
    return 0;
  }
  if (!is_known(object, failure)) return -1;
  enter(handle);
  json_t *params = json_pack("{s:I}", "object", object->number);
  json_t *result = restoration_call(handle, "unregisterObject", params, milliseconds, failure);
  if (result) remove_object(object);
  json_decref(result);
  leave(handle);
  return result ? 0 : -1;
}

restoration_object *restoration_object_at(const restoration *handle, const json_t *path) {
  for (restoration_object *object = handle->objects; object; object = object->next)
    if (!object->is_replaced && json_is_array(object->path) && json_equal(object->path, path)) return object;
  return NULL;
}

restoration_object *restoration_object_of(const restoration *handle, const json_t *reference) {
  restoration_object *object = object_named(handle, reference);
  return object ? object : restoration_object_at(handle, json_object_get(reference, "$restorable"));
}

/* -- Values ----------------------------------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

json_t *restoration_bytes(const void *bytes, size_t size) {
  const unsigned char *from = bytes;
  size_t length = (size + 2) / 3 * 4;
  char *text = malloc(length + 1);
  if (!text) return NULL;
  for (size_t i = 0; i * 3 < size; i++) {
    size_t count = size - i * 3 < 3 ? size - i * 3 : 3;
    unsigned bits = 0;
    for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < count ? from[i * 3 + k] : 0u);
    for (size_t k = 0; k < 4; k++) text[i * 4 + k] = k <= count ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  json_t *value = json_pack("{s:s%}", "$data", text, length);
  free(text);
  return value;
}

/* The text of an object whose only member has that name. */
static const char *tagged(const json_t *value, const char *name, size_t *length) {
  const json_t *text = json_object_size(value) == 1 ? json_object_get(value, name) : NULL;
  *length = json_string_length(text);
  return json_string_value(text);
}

void *restoration_bytes_of(const json_t *value, size_t *size) {
  size_t length, count = 0;
  const char *text = tagged(value, "$data", &length);
  if (!text || length % 4 != 0) return NULL;
  for (int i = 0; i < 2 && length > 0 && text[length - 1] == '='; i++) length--;
  unsigned char *bytes = malloc(length * 3 / 4 + 1);
  unsigned bits = 0;
  for (size_t i = 0; bytes && i < length; i++) {
    const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
    if (!digit) {
      free(bytes);
      return NULL;
    }
    bits = bits << 6 | (unsigned)(digit - digits);
    if (i % 4 > 0) bytes[count++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
  }
  *size = count;
  return bytes;
}

json_t *restoration_date(struct timespec when) {
  struct tm parts;
  char text[96];
  if (!gmtime_r(&when.tv_sec, &parts) || parts.tm_year < -1899 || parts.tm_year > 8099 || when.tv_nsec < 0
      || when.tv_nsec > 999999999)
    return NULL;
  int length = snprintf(
      text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%09ld", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
      parts.tm_hour, parts.tm_min, parts.tm_sec, when.tv_nsec);
  while (text[length - 1] == '0') length--;
  if (text[length - 1] == '.') length--;
  memcpy(text + length, "Z", 2);
  return json_pack("{s:s}", "$date", text);
}

/* Whether a text has this form, in which 0 stands for any digit. */
static bool has_form(const char *text, const char *form) {
  for (; *form; text++, form++)
    if (*form == '0' ? *text < '0' || *text > '9' : *text != *form) return false;
  return true;
}

static int number(const char *digits_at, int count) {
  int value = 0;
  while (count-- > 0) value = value * 10 + (*digits_at++ - '0');
  return value;
}

bool restoration_date_of(const json_t *value, struct timespec *when) {
  size_t length;
  const char *text = tagged(value, "$date", &length);
  if (!text || strlen(text) != length || !has_form(text, "0000-00-00T00:00:00")) return false;
  struct tm parts = {
      .tm_year = number(text, 4) - 1900, .tm_mon = number(text + 5, 2) - 1, .tm_mday = number(text + 8, 2),
      .tm_hour = number(text + 11, 2), .tm_min = number(text + 14, 2), .tm_sec = number(text + 17, 2),
  };
  struct tm normal = parts;
  time_t seconds = timegm(&normal);
  /* 30 February becomes a day of March. */
  if (normal.tm_mon != parts.tm_mon || normal.tm_mday != parts.tm_mday || normal.tm_hour != parts.tm_hour
      || normal.tm_min != parts.tm_min || normal.tm_sec != parts.tm_sec)
    return false;
  const char *zone = text + 19;
  long fraction = 0;
  if (*zone == '.') {
    if (!has_form(++zone, "0")) return false;
    for (long unit = 100000000; *zone >= '0' && *zone <= '9'; zone++, unit /= 10) fraction += (*zone - '0') * unit;
  }
  int minutes = 0;
  if (strcmp(zone, "Z") != 0) {
    if ((*zone != '+' && *zone != '-') || !has_form(zone + 1, "00:00") || zone[6]) return false;
    if (number(zone + 1, 2) > 23 || number(zone + 4, 2) > 59) return false;
    minutes = (number(zone + 1, 2) * 60 + number(zone + 4, 2)) * (*zone == '-' ? -1 : 1);
  }
  seconds -= minutes * 60;
  if (seconds < -62135596800 || seconds > 253402300799) return false;
  *when = (struct timespec){.tv_sec = seconds, .tv_nsec = fraction};
  return true;
}
