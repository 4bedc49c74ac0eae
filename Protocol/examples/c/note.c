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

static char note[65536];
static bool has_note;

/* What the broker is given when it asks. While there is no note, what is saved of the object holds. A line may be no
   UTF-8: then there is no state. */
static json_t *encode(restoration_object *object, void *data) {
  (void)object;
  (void)data;
  if (!has_note) return json_null();
  return json_pack("{s:s,s:s}", "language", "c", "note", note);
}

static int complain(const restoration_failure *failure) {
  fprintf(stderr, "%s%s%s\n", failure->message, *failure->hint ? "; " : "", failure->hint);
  return failure->code == RESTORATION_NO_BROKER ? 69 : 1;
}

/* Takes the whole lines of what has come; false at the end of input or of the user's patience. */
static bool take_input(restoration_object *object) {
  static char input[sizeof note];
  static size_t used;
  ssize_t count = read(STDIN_FILENO, input + used, sizeof input - 1 - used);
  bool is_end = count <= 0;
  used += is_end ? 0 : (size_t)count;
  char *feed;
  /* A last line may have no end, and one that is too long is cut. */
  while ((feed = memchr(input, '\n', used)) || (used > 0 && (is_end || used == sizeof input - 1))) {
    size_t length = feed ? (size_t)(feed - input) : used;
    size_t taken = feed ? length + 1 : length;
    bool is_quit = length == 4 && memcmp(input, "quit", 4) == 0;
    if (!is_quit) {
      memcpy(note, input, length);
      note[length] = 0;
      has_note = true;
    }
    memmove(input, input + taken, used - taken);
    used -= taken;
    if (is_quit) return false;
    printf("noted: %s\n", note);
    /* Nothing to do where the broker is away: it asks when it is back. */
    restoration_invalidate(object, NULL);
  }
  return !is_end;
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
  /* The broker has had no time yet to ask for the last line. */
  if ((has_note && restoration_encode(object, encode(object, NULL), patience, &failure) < 0)
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

/* Takes the note back that was saved. */
static int restore(restoration *session, restoration_object *object) {
  restoration_failure failure;
  json_t *saved = restoration_decode(object, patience, &failure);
  if (!saved) return complain(&failure);
  const json_t *state = json_object_get(saved, "state");
  if (json_is_object(state)) {
    const char *text = json_string_value(json_object_get(state, "note"));
    snprintf(note, sizeof note, "%s", text ? text : "");
    has_note = true;
    printf("restored: %s\n", note);
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
  if (!session) return complain(&failure);
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
  return status;
}
