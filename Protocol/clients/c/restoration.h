/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State restoration for processes on Linux: a client of restorationd in C, on jansson.
 *
 * One handle is one connection, and at most one session. There are no threads: calls of the broker are answered by
 * restoration_dispatch, which an event loop calls when the descriptor is ready, and while a blocking call waits. A
 * handle may be used by one thread at a time, and by the process that opened it: in a forked child restoration_close
 * closes the descriptor and leaves the session to the parent. Callbacks may call everything, also restoration_close.
 *
 * If a comment says that a json_t argument is stolen, the call takes the reference over, even if it fails.
 * Names, parameters and results are those of the protocol's pages.
 */
#ifndef RESTORATION_H
#define RESTORATION_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct restoration restoration;
typedef struct restoration_object restoration_object;

/* An error. Nothing in it must be freed; texts that do not fit are truncated. If the kind is "shuttingDown", the broker
 * ended before it did the call: repeat the call on this handle, because the next broker may adopt the connection. */
typedef struct restoration_failure {
  int code;           /* the broker's (-32002), or one of those below */
  char kind[48];      /* the broker's ("unknownObject"), or in letters what `code` says; decide by this */
  char message[256];  /* for people, a sentence without its full stop */
  char hint[256];     /* for people, a whole sentence: the next step; may be empty */
  char path[1024];    /* components of the object concerned, joined by "/"; may be empty */
} restoration_failure;

enum {
  RESTORATION_NO_BROKER = -1,   /* "noBroker": no broker listens on the socket */
  RESTORATION_LOST = -2,        /* "connectionLost": resume; the call may have taken effect */
  RESTORATION_TIMED_OUT = -3,   /* "callTimedOut": the call was cancelled; it may have taken effect */
  RESTORATION_NO_MEMORY = -4,   /* "noMemory" */
  RESTORATION_MISUSE = -5,      /* "misuse" of this library; see the message */
  RESTORATION_UNREADABLE = -6,  /* "unreadable": jansson cannot read the answer, such as an integer beyond 64 bits */
  RESTORATION_FORKED = -7,      /* "forked": another process has forked this one and keeps the handle; open one here */
  RESTORATION_DUPLICATE = -8,   /* "duplicateObject": another object of this process is registered under the path */
  RESTORATION_DISCARDED = -9,   /* "discarded": the user has quit the application; nothing of the session is stored */
};

/* Of the broker's codes, those after which a program must not simply go on (R36). */
enum {
  RESTORATION_OWNED_ELSEWHERE = -32022, /* "ownedElsewhere": another host has the application; `more` of
                                           restoration_session takes it from there by {"takeOver": true} */
  RESTORATION_FENCED = -32023,          /* "fenced": another host has got it, and the session has ended */
};

/* -- Connection ------------------------------------------------------------------------------------------------- */

/* Writes $RESTORATIOND_SOCKET, otherwise restorationd/broker.sock in $XDG_RUNTIME_DIR; false if it does not fit. */
bool restoration_default_socket(char *path, size_t size);

/* Connects; NULL is the default socket. Returns NULL with `failure`, which may be NULL here and below. */
restoration *restoration_open(const char *socket, restoration_failure *failure);

/* Closes the connection without goodbye and frees the handle and its objects. NULL is allowed. In a callback the
 * handle is freed when the outermost call on it returns. Pending calls fail with RESTORATION_LOST. For handles that are
 * open when the program ends by itself with status 0, the library says goodbye for a restart. */
void restoration_close(restoration *handle);

/* The descriptor to poll; -1 while the connection is lost. It changes at restoration_resume. */
int restoration_fd(const restoration *handle);

/* POLLIN, and POLLOUT while output waits. */
short restoration_events(const restoration *handle);

/* Reads and writes without blocking, and calls back. 0, or -1 if the connection is lost. */
int restoration_dispatch(restoration *handle);

/* Polls (-1: for ever), then dispatches. 1; 0 after the time or a signal; -1 if the connection is lost. */
int restoration_wait(restoration *handle, int milliseconds);

/* -- Calls ------------------------------------------------------------------------------------------------------ */

/* Here and below, `milliseconds` limits how long a call may take. With zero or less it fails unless the answer is there
 * already. For a call without a limit, use restoration_send, or INT_MAX. */

/* `result` is borrowed, and NULL if there is a failure. */
typedef void restoration_answer(
    restoration *handle, json_t *result, const restoration_failure *failure, void *data);

/* Sends a request and returns its id; `answer` is called once. On failure returns 0, and it is not. Steals params. */
json_int_t restoration_send(
    restoration *handle, const char *method, json_t *params, restoration_answer *answer, void *data,
    restoration_failure *failure);

/* `told` gets errors that name no call: the broker could not read a message, such as an answer to one of its own calls.
 * If calls are pending, the last one fails as well. `result` is NULL. */
void restoration_on_error(restoration *handle, restoration_answer *told, void *data);

/* Cancels a call. Its callback still gets the answer, or requestCancelled. */
void restoration_cancel(restoration *handle, json_int_t id);

/* Calls and waits; serves meanwhile. A new reference, or NULL with `failure`. Steals params. */
json_t *restoration_call(
    restoration *handle, const char *method, json_t *params, int milliseconds, restoration_failure *failure);

/* Sends a notification. 0, or -1 with `failure`. Steals params. */
int restoration_notify(restoration *handle, const char *method, json_t *params, restoration_failure *failure);

/* -- Session ---------------------------------------------------------------------------------------------------- */

/* Answers a call of the broker with a new reference, or NULL for an error; `params` is borrowed. For a notification
 * the result is dropped, and may be NULL. */
typedef json_t *restoration_handler(restoration *handle, const char *method, json_t *params, void *data);

/* Serves a call or a notification. Call it before restoration_begin, which tells the broker. 0 or -1. */
int restoration_serve(restoration *handle, const char *method, restoration_handler *handler, void *data);

/* What a handler of objectWithRestorationIdentifierPath returns: that it has registered this object, or, with NULL, that
 * the object is not to be restored; that a process is about to register it; that another session is to be asked. Say by
 * restoration_call which classes this session makes (registerRestorationClass). */
json_t *restoration_made(const restoration_object *object);
json_t *restoration_awaited(void);
json_t *restoration_pass(void);
json_t *restoration_forget(void);

typedef struct restoration_session {
  const char *application;
  const char *process;  /* role of this process, or NULL */
  const char *token;    /* of the session to resume, or NULL */
  bool serves_states;   /* the broker may ask for states and hand them out, by the callbacks of the objects */
  json_t *more;         /* further members of `initialize`, borrowed, or NULL. If the environment has
                           RESTORATION_UNIT, `storyboard` is by default {"unit": $RESTORATION_UNIT}. */
} restoration_session;

/* Opens a session. 0, or -1 with `failure`. */
int restoration_begin(
    restoration *handle, const restoration_session *session, int milliseconds, restoration_failure *failure);

/* Connects again after a loss, trying at least once, and resumes the session. 1 if it was resumed. 0 if the broker has
 * forgotten the session: the objects were registered in a new one, parents first, and objects that could not be
 * registered count as replaced. -1 with `failure`: restoration_fd is then -1. Register restoration classes, data
 * sources and subscriptions again. If an encode was not answered, encode the state again.
 *
 * It fails as "fenced" if another host has got the application: it would be taken from there, where its user is now. If
 * the user is back, begin another session with restoration_open and restoration_begin. A handler of "archiveLost" is
 * told at once (restoration_serve). */
int restoration_resume(restoration *handle, int milliseconds, restoration_failure *failure);

/* Of the session: its token (a secret), and the first `restoration` and `limits`. NULL without a session. */
const char *restoration_token(const restoration *handle);
const json_t *restoration_found(const restoration *handle);
const json_t *restoration_limits(const restoration *handle);

/* "restart" and "logout" keep the saved states, "closed" and "userQuit" do not. Frees the objects. 0 or -1. */
int restoration_goodbye(
    restoration *handle, const char *reason, int milliseconds, restoration_failure *failure);

/* -- Objects ---------------------------------------------------------------------------------------------------- */

typedef struct restoration_callbacks {
  /* Returns the state, a new reference; json_null() if it has not changed since it was pushed; NULL on failure. */
  json_t *(*encode)(restoration_object *object, void *data);
  /* Gets the state from a restoration; borrowed. */
  void (*decode)(restoration_object *object, json_t *state, void *data);
  /* All objects of the application are restored. */
  void (*finished)(restoration_object *object, void *data);
} restoration_callbacks;

/* Registers an object; `params` as in registerObjectForStateRestoration, stolen. Callbacks need `serves_states`, and
 * may be NULL. Registering the same path again gives the same object; with other callbacks or other `data` it fails
 * with RESTORATION_DUPLICATE, and the first object stays as it is. NULL with `failure`. The object is freed by
 * restoration_unregister, restoration_goodbye and restoration_close. Add the time to wait for a parent. No callback for
 * the object comes before this has returned. */
restoration_object *restoration_register(
    restoration *handle, json_t *params, const restoration_callbacks *callbacks, void *data, int milliseconds,
    restoration_failure *failure);

json_int_t restoration_object_handle(const restoration_object *object);  /* 0 if the object was replaced */
const json_t *restoration_object_path(const restoration_object *object); /* an array; null if the identifier is null */
void *restoration_object_data(const restoration_object *object);         /* as it was registered */
const char *restoration_object_found(const restoration_object *object);  /* "none", "available", … at registration */
bool restoration_object_existing(const restoration_object *object);      /* the session had the path already */
bool restoration_object_handing(const restoration_object *object);       /* the process came late: `decode` is called */

/* The object of this session at a path, an array; NULL if it has none there. */
restoration_object *restoration_object_at(const restoration *handle, const json_t *path);

/* The object that a reference in a decoded state refers to; NULL if this session does not have it. */
restoration_object *restoration_object_of(const restoration *handle, const json_t *reference);

/* Whether another session has taken the object over, or the session was forgotten and the path is another session's or
 * has no parent. All calls with the object fail ("replaced") until its path is registered again. */
bool restoration_object_is_replaced(const restoration_object *object);

/* The whole result of decodeRestorableState, a new reference; NULL with `failure`. */
json_t *restoration_decode(restoration_object *object, int milliseconds, restoration_failure *failure);

/* Saves a state; it is on disk when this returns. If the object is excluded, the library keeps it, and saves it when the
 * object is included. Steals it. 0, 1 if the user has quit the application, or -1. */
int restoration_encode(
    restoration_object *object, json_t *state, int milliseconds, restoration_failure *failure);

/* Saves the application's own state as restoration_encode does an object's; while there is a delegate, only it may. */
int restoration_encode_application(
    restoration *handle, json_t *state, int milliseconds, restoration_failure *failure);

/* Makes the broker ask for the state soon; does not wait. 0 or -1. */
int restoration_invalidate(restoration_object *object, restoration_failure *failure);

/* Renames the object; NULL excludes it, and a negative position removes the position. 0 or -1. */
int restoration_rename(
    restoration_object *object, const char *identifier, int position, int milliseconds,
    restoration_failure *failure);

/* Moves the object with its subtree under another parent: a handle, a path or null, stolen. 0 or -1. */
int restoration_move(restoration_object *object, json_t *parent, int milliseconds, restoration_failure *failure);

/* Removes the object with its state, and frees it; a replaced object is only freed. 0, or -1: the object remains. */
int restoration_unregister(restoration_object *object, int milliseconds, restoration_failure *failure);

/* -- Values ----------------------------------------------------------------------------------------------------- */

/* Bytes and points in time in a state, as all client libraries write them. Each returns a new reference; NULL if no
 * memory is left, or if the time is outside of the years 1 to 9999. */
json_t *restoration_bytes(const void *bytes, size_t size);
json_t *restoration_date(struct timespec when);

/* Reads bytes: returns memory to be freed, never of size 0; NULL if the value is something else. */
void *restoration_bytes_of(const json_t *value, size_t *size);

/* Reads a point in time; false if the value is something else. */
bool restoration_date_of(const json_t *value, struct timespec *when);

#ifdef __cplusplus
}
#endif

#endif
