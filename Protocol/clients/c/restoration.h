/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State restoration for processes on Linux: a client of restorationd in C, on jansson.
 *
 * One handle is one connection, and at most one session. There are no threads: whatever the broker wants is answered
 * from restoration_dispatch, which an event loop calls when the descriptor is ready, and while a blocking call waits.
 * A handle is for one thread at a time, and for the process that opened it: in a forked child restoration_close closes
 * the descriptor and leaves the session to the parent. Callbacks may call everything here, restoration_close included.
 *
 * json_t arguments that are passed in are taken over ("stolen") where the comment says so, also when the call fails.
 * Names, parameters and results are those of the protocol's pages.
 */
#ifndef RESTORATION_H
#define RESTORATION_H

#include <jansson.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct restoration restoration;
typedef struct restoration_object restoration_object;

/* What went wrong. Nothing in it has to be freed; texts that do not fit are cut. With the kind "shuttingDown" the broker
 * ended while the call waited: make it again on this handle, as the connection may go on with the next broker. */
typedef struct restoration_failure {
  int code;           /* the broker's (-32002), or one of those below */
  char kind[48];      /* the broker's ("unknownObject"), or in letters what `code` says; decide by this */
  char message[256];  /* for people */
  char hint[256];     /* for people: what to do next; may be empty */
  char path[1024];    /* components of the object concerned, joined by "/"; may be empty */
} restoration_failure;

enum {
  RESTORATION_NO_BROKER = -1,   /* "noBroker": nothing takes connections on the socket */
  RESTORATION_LOST = -2,        /* "connectionLost": resume; what was asked may have been done or not */
  RESTORATION_TIMED_OUT = -3,   /* "callTimedOut": the call was cancelled; it may have been done nevertheless */
  RESTORATION_NO_MEMORY = -4,   /* "noMemory" */
  RESTORATION_MISUSE = -5,      /* "misuse": of this library; the message says what */
  RESTORATION_UNREADABLE = -6,  /* "unreadable": jansson cannot read the answer, such as an integer beyond 64 bits */
  RESTORATION_FORKED = -7,      /* "forked": another process has forked this one and keeps the handle; open one here */
};

/* -- Connection ------------------------------------------------------------------------------------------------- */

/* Writes $RESTORATIOND_SOCKET, else restorationd/broker.sock in $XDG_RUNTIME_DIR; false where it does not fit. */
bool restoration_default_socket(char *path, size_t size);

/* Connects. NULL for the default socket. NULL comes back with `failure`, which may be NULL here as everywhere. */
restoration *restoration_open(const char *socket, restoration_failure *failure);

/* Closes the connection without goodbye and frees the handle and its objects. NULL is allowed. In a callback the
 * handle is freed when the outermost call on it returns. Calls without answer are told RESTORATION_LOST. */
void restoration_close(restoration *handle);

/* To poll for; -1 while the connection is lost, and another one after restoration_resume. */
int restoration_fd(const restoration *handle);

/* POLLIN, and POLLOUT while something waits to be written. */
short restoration_events(const restoration *handle);

/* Reads and writes what is possible without blocking, and calls back. 0, or -1 when the connection is lost. */
int restoration_dispatch(restoration *handle);

/* Polls for so long (-1: for ever), then dispatches. 1, 0 when nothing came or a signal did, -1 when it is lost. */
int restoration_wait(restoration *handle, int milliseconds);

/* -- Calls ------------------------------------------------------------------------------------------------------ */

/* `milliseconds` is how long a call may take, here and below. Zero or less fails unless the answer is there already;
 * a call that may take for ever is made with restoration_send, or with INT_MAX. */

/* `result` is borrowed, and NULL where there is a failure. */
typedef void restoration_answer(
    restoration *handle, json_t *result, const restoration_failure *failure, void *data);

/* Sends a request and returns its id; `answer` is called once. 0 with `failure`, and then it is not. Steals params. */
json_int_t restoration_send(
    restoration *handle, const char *method, json_t *params, restoration_answer *answer, void *data,
    restoration_failure *failure);

/* `told` gets errors that name no call: the broker could not read something that was sent, such as an answer to one of
 * its own calls. Where calls wait, the one that was sent last fails as well. `result` is NULL. */
void restoration_on_error(restoration *handle, restoration_answer *told, void *data);

/* Says that an answer is not wanted any more. It is still told: as it would have been, or as requestCancelled. */
void restoration_cancel(restoration *handle, json_int_t id);

/* The same, waiting; serves meanwhile. A new reference, or NULL with `failure`. Steals params. */
json_t *restoration_call(
    restoration *handle, const char *method, json_t *params, int milliseconds, restoration_failure *failure);

/* Sends a notification. 0, or -1 with `failure`. Steals params. */
int restoration_notify(restoration *handle, const char *method, json_t *params, restoration_failure *failure);

/* -- Session ---------------------------------------------------------------------------------------------------- */

/* Answers a call of the broker with a new reference, or NULL for an error; `params` is borrowed. For a notification
 * the result is dropped, and may be NULL. */
typedef json_t *restoration_handler(restoration *handle, const char *method, json_t *params, void *data);

/* Serves a call or a notification. To be said before restoration_begin, which tells the broker. 0 or -1. */
int restoration_serve(restoration *handle, const char *method, restoration_handler *handler, void *data);

typedef struct restoration_session {
  const char *application;
  const char *process;  /* role of this process, or NULL */
  const char *token;    /* of a session to go on with, or NULL */
  bool serves_states;   /* the broker may ask for states and hand them out, by the callbacks of the objects */
  json_t *more;         /* further members of `initialize`, borrowed, or NULL. `storyboard` is {"unit": ...} with the
                           environment variable RESTORATION_UNIT, where that is set and nothing else is said. */
} restoration_session;

/* Opens a session. 0, or -1 with `failure`. */
int restoration_begin(
    restoration *handle, const restoration_session *session, int milliseconds, restoration_failure *failure);

/* Connects again after a loss, trying for so long (at least once), and goes on with the session. 1; 0 where the broker
 * has forgotten the session and the objects were registered in a new one, parents first, where those that could not be
 * count as replaced; -1 with `failure`, and then restoration_fd is -1. Restoration classes, data sources and
 * subscriptions have to be registered again. A state whose encode was not answered is simply encoded again. */
int restoration_resume(restoration *handle, int milliseconds, restoration_failure *failure);

/* Of the session: its token (a secret), and `restoration` and `limits` of its beginning. NULL before. */
const char *restoration_token(const restoration *handle);
const json_t *restoration_found(const restoration *handle);
const json_t *restoration_limits(const restoration *handle);

/* "restart" and "logout" keep what is saved, "closed" and "userQuit" do not. Frees the objects. 0 or -1. */
int restoration_goodbye(
    restoration *handle, const char *reason, int milliseconds, restoration_failure *failure);

/* -- Objects ---------------------------------------------------------------------------------------------------- */

typedef struct restoration_callbacks {
  /* The state now, a new reference; json_null() where it has not changed since it was pushed; NULL: it failed. */
  json_t *(*encode)(restoration_object *object, void *data);
  /* Takes the state that a restoration hands out; borrowed. */
  void (*decode)(restoration_object *object, json_t *state, void *data);
  /* All objects of the application are restored. */
  void (*finished)(restoration_object *object, void *data);
} restoration_callbacks;

/* Registers an object; `params` as in registerObjectForStateRestoration, stolen. Callbacks need `serves_states`, and
 * may be NULL. Registering the same path again gives the same object. NULL with `failure`. The object is freed by
 * restoration_unregister, restoration_goodbye and restoration_close. Add the time to wait for a parent. */
restoration_object *restoration_register(
    restoration *handle, json_t *params, const restoration_callbacks *callbacks, void *data, int milliseconds,
    restoration_failure *failure);

json_int_t restoration_object_handle(const restoration_object *object);  /* 0 where it was replaced */
const json_t *restoration_object_path(const restoration_object *object); /* array; null without identifier */
const char *restoration_object_found(const restoration_object *object);  /* "none", "available", … at registration */

/* Another session has taken it over, or the session was forgotten and its path belongs to somebody else or has no
 * parent now. All calls with it fail ("replaced") until its path is registered again. */
bool restoration_object_is_replaced(const restoration_object *object);

/* What is saved: the whole result of decodeRestorableState, a new reference. NULL with `failure`. */
json_t *restoration_decode(restoration_object *object, int milliseconds, restoration_failure *failure);

/* Saves a state, on disk when this returns. Steals it. 0, 1 where the user has quit the application, or -1. */
int restoration_encode(
    restoration_object *object, json_t *state, int milliseconds, restoration_failure *failure);

/* Has the broker ask for the state soon; does not wait. 0 or -1. */
int restoration_invalidate(restoration_object *object, restoration_failure *failure);

/* Renames the object, or excludes it (NULL); a negative position is none. 0 or -1. */
int restoration_rename(
    restoration_object *object, const char *identifier, int position, int milliseconds,
    restoration_failure *failure);

/* Moves it, and what is below it, under another parent: a handle, a path or null, stolen. 0 or -1. */
int restoration_move(restoration_object *object, json_t *parent, int milliseconds, restoration_failure *failure);

/* Takes the object out, with its state, and frees it. 0 or -1, and then it is still there. One that was replaced is
 * only freed. */
int restoration_unregister(restoration_object *object, int milliseconds, restoration_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
