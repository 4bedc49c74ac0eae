/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A note that comes back: note IDENTIFIER [PARENT_COMPONENT ...]
 *
 * Every line on standard input becomes the note. End of input, or a line "quit", ends the program; whatever ends it,
 * the note is there when it is started again. See ../README.md for what all examples have in common. Compile with
 *
 *   cc -std=c11 -I ../../clients/c -o note note.c ../../clients/c/restoration.c $(pkg-config --cflags --libs jansson)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "restoration.h"

enum { patience = 10000 };

static json_t *note; /* a string, which may be long and have any characters; NULL: nothing yet */

/* The state that the broker asks for. If there is no note yet, the saved state stays. */
static json_t *encode(restoration_object *object, void *data) {
  (void)object;
  (void)data;
  return note ? json_pack("{s:s,s:O}", "language", "c", "note", note) : json_null();
}

static int complain(const restoration_failure *failure) {
  fprintf(stderr, "%s%s%s\n", failure->message, *failure->hint ? "; " : "", failure->hint);
  return failure->code == RESTORATION_NO_BROKER || failure->code == RESTORATION_LOST ? 69 : 1;
}

static void print_note(const char *what) {
  printf("%s: ", what);
  fwrite(json_string_value(note), 1, json_string_length(note), stdout);
  putchar('\n');
}

/* Without memory the program ends. */
static char *resize(char *bytes, size_t size) {
  bytes = realloc(bytes, size);
  if (!bytes) abort();
  return bytes;
}

/* If a line is not UTF-8, U+FFFD replaces each invalid byte. */
static json_t *text_of(const char *line, size_t length) {
  json_t *text = json_stringn(line, length);
  if (text) return text;
  char *bytes = resize(NULL, 3 * length);
  size_t used = 0;
  for (size_t i = 0; i < length;) {
    size_t count = 0;
    json_t *character = NULL;
    while (!character && count < 4 && i + count < length) character = json_stringn(line + i, ++count);
    memcpy(bytes + used, character ? line + i : "\xEF\xBF\xBD", character ? count : 3);
    used += character ? count : 3;
    i += character ? count : 1;
    json_decref(character);
  }
  text = json_stringn(bytes, used);
  free(bytes);
  return text;
}

/* Handles complete lines of the input; false at its end, or at a line `quit`. */
static bool take_input(restoration_object *object) {
  static char *input; /* grows to the longest line */
  static size_t used, size;
  if (size - used < 4096) input = resize(input, size = 2 * size + 65536);
  ssize_t count = read(STDIN_FILENO, input + used, size - used);
  bool is_end = count <= 0, is_quit = false;
  size_t searched = used, start = 0;
  used += is_end ? 0 : (size_t)count;
  /* The last line may have no line feed. */
  while (!is_quit && start < used) {
    const char *feed = memchr(input + searched, '\n', used - searched);
    if (!feed && !is_end) break;
    size_t end = feed ? (size_t)(feed - input) : used;
    is_quit = end - start == 4 && memcmp(input + start, "quit", 4) == 0;
    if (!is_quit) {
      json_decref(note);
      note = text_of(input + start, end - start);
      print_note("noted");
      /* If the broker is away, there is nothing to do: it asks when it is back. */
      restoration_invalidate(object, NULL);
    }
    start = searched = feed ? end + 1 : end;
  }
  memmove(input, input + start, used - start);
  used -= start;
  return !is_quit && !is_end;
}

/* Waits for lines, and answers the broker meanwhile. */
static int run(restoration *session, restoration_object *object) {
  restoration_failure failure;
  for (;;) {
    struct pollfd polled[] = {
        {STDIN_FILENO, POLLIN, 0}, {restoration_fd(session), restoration_events(session), 0}};
    if (poll(polled, 2, -1) < 0) continue;
    if (polled[1].revents && restoration_dispatch(session) < 0) {
      if (restoration_resume(session, patience, &failure) < 0) return complain(&failure);
      restoration_invalidate(object, NULL);
      continue;
    }
    if (polled[0].revents && !take_input(object)) break;
  }
  /* The broker may not have asked for the last line yet. */
  if ((note && restoration_encode(object, encode(object, NULL), patience, &failure) < 0)
      || restoration_goodbye(session, "restart", patience, &failure) < 0)
    return complain(&failure);
  return 0;
}

static restoration_object *register_note(restoration *session, char **path, restoration_failure *failure) {
  static const restoration_callbacks callbacks = {.encode = encode};
  json_t *params =
      json_pack("{s:s,s:i}", "restorationIdentifier", path[0], "awaitParentMilliseconds", patience);
  json_t *parent = json_array();
  for (size_t i = 1; path[i]; i++) json_array_append_new(parent, json_string(path[i]));
  if (path[1]) json_object_set(params, "restorationParent", parent);
  json_decref(parent);
  return restoration_register(session, params, &callbacks, NULL, 2 * patience, failure);
}

/* Restores the saved note. */
static int restore(restoration *session, restoration_object *object) {
  restoration_failure failure;
  json_t *saved = restoration_decode(object, patience, &failure);
  if (!saved) return complain(&failure);
  json_t *text = json_object_get(json_object_get(saved, "state"), "note");
  if (json_is_string(text)) {
    note = json_incref(text);
    print_note("restored");
  } else {
    printf("new\n");
  }
  json_decref(saved);
  json_t *completed = restoration_call(session, "completeStateRestoration", json_object(), patience, &failure);
  if (!completed) return complain(&failure);
  json_decref(completed);
  return 0;
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: note IDENTIFIER [PARENT_COMPONENT ...]\n");
    return 64;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char *application = getenv("RESTORATION_APPLICATION");
  if (!application || !*application) application = "org.example.notes";
  restoration_failure failure;
  restoration *session = restoration_open(NULL, &failure);
  if (!session) {
    complain(&failure);
    return 69;
  }
  restoration_session options = {
      .application = application, .process = "c", .serves_states = true};
  restoration_object *object = NULL;
  int status = 0;
  if (restoration_begin(session, &options, patience, &failure) < 0
      || !(object = register_note(session, arguments + 1, &failure)))
    status = complain(&failure);
  if (!status) status = restore(session, object);
  if (!status) status = run(session, object);
  restoration_close(session);
  json_decref(note);
  return status;
}
