/* SPDX-License-Identifier: Apache-2.0 */
#include "restoration-gtk.h"

#include <stdbool.h>
#include <string.h>

#include "restoration-glib.h"
#include "restoration.h"
#include "variant.h"

#define ENCODE "encodeRestorableStateWithCoder"
#define OWNED "restoration-gtk-session" /* the application's data that keeps the session */

enum {
  start_patience = 5000,         /* milliseconds that a call may take before the application is activated */
  start_path_patience = 5000,    /* how long it may be a former process's, which is killed and still ending */
  start_path_pause = 100,
  start_parent_patience = 1000,  /* how long a restored window waits for its parent then */
  end_patience = 1000,           /* that a call may take after the application has shut down */
  parent_patience = 10000,       /* how long a new window waits for its parent, while the main loop goes on */
  restarts_max = 4,              /* of the broker, while one object is restored */
};

/* What is saved of an application's process, or of a window: an object of the broker. */
typedef struct saved_object {
  gpointer owner;      /* the session, or a window; NULL without one, and the name stays taken */
  bool is_closed;      /* the window was closed, and the broker has not answered yet that it is unregistered */
  json_t *params;      /* of its registration */
  json_int_t handle;   /* 0 until it is registered */
  char *pushed;        /* the text that the broker has or gets */
  bool is_registering, is_pushing;
  bool must_push;      /* it may have changed since it was pushed */
  bool has_complained;
  json_t *geometry;    /* to be given to the window when it is shown for the first time, or NULL */
} saved_object;

struct _RestorationGtkSession {
  GObject parent_instance;
  GtkApplication *gtk;       /* not owned; it owns the session, and NULL when it is gone */
  restoration *handle;       /* NULL without a broker */
  GSource *source;
  char *application, *process, *session_id;
  guint interval, timer, idle;
  saved_object *root;
  GPtrArray *objects;        /* of the windows; owned */
  json_t *saved_windows;     /* paths to restore, the most recently used first */
  saved_object *restoring;   /* for the window that a handler of restore-window is to make */
  RestorationGtkRestoreReason reason;
  bool is_opened, is_restored, is_forgotten;
  bool is_restoring;         /* what is not restored yet must not be replaced */
  bool must_discard;         /* the broker has not answered yet that all is forgotten */
  bool is_ending;            /* the last window was closed: what is saved stays, until a window is opened */
};

G_DEFINE_FINAL_TYPE(RestorationGtkSession, restoration_gtk_session, G_TYPE_OBJECT)

enum { SAVE_STATE, RESTORE_STATE, RESTORE_WINDOW, SAVE_WINDOW, SIGNALS };
static guint signals[SIGNALS];

enum { PROP_0, PROP_GTK, PROP_APPLICATION, PROP_PROCESS, PROP_AUTOSAVE_INTERVAL, PROP_SESSION_ID, PROPS };
static GParamSpec *props[PROPS];

GType restoration_gtk_restore_reason_get_type(void) {
  static gsize type;
  if (g_once_init_enter(&type)) {
    static const GEnumValue values[] = {
        {RESTORATION_GTK_RESTORE_REASON_PRISTINE, "RESTORATION_GTK_RESTORE_REASON_PRISTINE", "pristine"},
        {RESTORATION_GTK_RESTORE_REASON_LAUNCH, "RESTORATION_GTK_RESTORE_REASON_LAUNCH", "launch"},
        {RESTORATION_GTK_RESTORE_REASON_RECOVER, "RESTORATION_GTK_RESTORE_REASON_RECOVER", "recover"},
        {RESTORATION_GTK_RESTORE_REASON_RESTORE, "RESTORATION_GTK_RESTORE_REASON_RESTORE", "restore"},
        {0, NULL, NULL}};
    g_once_init_leave(&type, g_enum_register_static("RestorationGtkRestoreReason", values));
  }
  return type;
}

/* -- What is saved ---------------------------------------------------------------------------------------------- */

/* What the program saves of the process, or of a window. */
static json_t *emitted(RestorationGtkSession *self, GtkWindow *window) {
  gboolean handled;
  GVariantDict *dict = g_variant_dict_new(NULL);
  if (window) g_signal_emit(self, signals[SAVE_WINDOW], 0, window, dict, &handled);
  else g_signal_emit(self, signals[SAVE_STATE], 0, dict, &handled);
  GVariant *state = g_variant_ref_sink(g_variant_dict_end(dict));
  json_t *json = json_of_state(state);
  g_variant_unref(state);
  g_variant_dict_unref(dict);
  return json;
}

static saved_object *object_of(RestorationGtkSession *self, gpointer owner) {
  if (owner == self) return self->root;
  for (guint i = 0; i < self->objects->len; i++) {
    saved_object *object = self->objects->pdata[i];
    if (object->owner == owner) return object;
  }
  return NULL;
}

/* The path at which an object is registered. */
static json_t *path_of(const saved_object *object) {
  json_t *path = json_copy(json_object_get(object->params, "restorationParent"));
  if (!path) path = json_array();
  json_array_append(path, json_object_get(object->params, "restorationIdentifier"));
  return path;
}

static json_t *windows_of(RestorationGtkSession *self) {
  json_t *paths = json_array();
  GList *windows = gtk_application_get_windows(self->gtk);
  /* The one that is being closed has left the application already. */
  for (guint i = 0; i < self->objects->len; i++) {
    const saved_object *object = self->objects->pdata[i];
    if (object->owner && !g_list_find(windows, object->owner)) json_array_append_new(paths, path_of(object));
  }
  for (GList *each = windows; each; each = each->next) {
    const saved_object *object = object_of(self, each->data);
    if (object) json_array_append_new(paths, path_of(object));
  }
  /* Windows that could not be restored have another chance. */
  for (guint i = 0; i < self->objects->len; i++) {
    const saved_object *object = self->objects->pdata[i];
    if (!object->owner && !object->is_closed) json_array_append_new(paths, path_of(object));
  }
  return paths;
}

static json_t *geometry_of(GtkWindow *window) {
  int width, height;
  gtk_window_get_default_size(window, &width, &height);
  return json_pack(
      "{s:i, s:i, s:b, s:b}", "width", width, "height", height, "maximized", gtk_window_is_maximized(window),
      "fullscreen", gtk_window_is_fullscreen(window));
}

/* The state of an object of the broker: what the program saves, beside what GTK would. */
static json_t *state_of(RestorationGtkSession *self, const saved_object *object) {
  if (object->owner == self)
    return json_pack(
        "{s:o, s:o, s:{s:s*}}", "state", emitted(self, NULL), "windows", windows_of(self), "gtk", "session-id",
        self->session_id);
  GtkWindow *window = g_object_ref(object->owner); /* a handler may close it */
  json_t *state = emitted(self, window);
  json_t *geometry = object->geometry ? json_incref(object->geometry) : geometry_of(window);
  g_object_unref(window);
  return json_pack("{s:o, s:o}", "state", state, "gtk", geometry);
}

/* -- Conversation with the broker ------------------------------------------------------------------------------- */

static void push(RestorationGtkSession *self, saved_object *object);
static void free_object(gpointer data);

static void complain(const char *what, const restoration_failure *failure) {
  g_warning("%s: %s (%s). %s", what, failure->message, failure->kind, failure->hint);
}

static bool is_ending_broker(const restoration_failure *failure) {
  return failure && strcmp(failure->kind, "shuttingDown") == 0;
}

static bool is_lost(const restoration_failure *failure) { return failure && failure->code == RESTORATION_LOST; }

static void complain_once(saved_object *object, const restoration_failure *failure) {
  if (!failure || is_lost(failure) || object->has_complained) return;
  object->has_complained = true;
  complain("a window or its state is not saved", failure);
}

/* Tells the user that a state is withheld from the program (R35). */
static void tell_if_withheld(const RestorationGtkSession *self, const saved_object *object, const json_t *result) {
  const char *state = json_string_value(json_object_get(json_object_get(result, "restoration"), "state"));
  if (g_strcmp0(state, "quarantined") != 0 || json_is_true(json_object_get(result, "existing"))) return;
  GString *text = g_string_new(NULL);
  json_t *path = path_of(object), *component;
  size_t index;
  json_array_foreach(path, index, component)
    g_string_append_printf(text, "%s%s", index ? "/" : "", json_string_value(component));
  char *quoted = g_shell_quote(text->str);
  g_warning(
      "the saved state of %s is withheld, because its process failed when it was given it; to release it: "
      "restorationctl quarantine release %s %s",
      text->str, self->application, quoted);
  g_free(quoted);
  g_string_free(text, TRUE);
  json_decref(path);
}

/* `data` of a call about an object, whose window may be closed when the answer comes. */
typedef struct question {
  RestorationGtkSession *session;
  saved_object *object;
} question;

static question *asking(RestorationGtkSession *self, saved_object *object) {
  question *asked = g_new(question, 1);
  *asked = (question){g_object_ref(self), g_rc_box_acquire(object)};
  return asked;
}

static void end_question(question *asked) {
  g_object_unref(asked->session);
  free_object(asked->object);
  g_free(asked);
}

/* The object with a handle, unless its window was closed. */
static saved_object *object_with(RestorationGtkSession *self, json_int_t handle) {
  if (self->root && self->root->handle == handle) return self->root;
  for (guint i = 0; i < self->objects->len; i++) {
    saved_object *object = self->objects->pdata[i];
    if (object->handle == handle && !object->is_closed) return object;
  }
  return NULL;
}

static void unregister(RestorationGtkSession *self, saved_object *object);

static void take_unregistration(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  question *asked = data;
  if (is_ending_broker(failure)) unregister(asked->session, asked->object);
  else if (!is_lost(failure)) g_ptr_array_remove(asked->session->objects, asked->object);
  end_question(asked);
}

/* Without waiting. After a loss of the broker it is said again. */
static void unregister(RestorationGtkSession *self, saved_object *object) {
  question *asked = asking(self, object);
  json_t *params = json_pack("{s:I}", "object", object->handle);
  if (!restoration_send(
          self->handle, "unregisterObject", params, take_unregistration, asked, NULL))
    end_question(asked);
}

/* Without waiting. */
static void register_object(RestorationGtkSession *self, saved_object *object);

static void take_registration(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  question *asked = data;
  saved_object *object = asked->object;
  json_int_t number = json_integer_value(json_object_get(result, "object"));
  bool is_shared = number && object_with(asked->session, number);
  object->is_registering = false;
  if (is_shared) {
    if (!object->has_complained && !object->is_closed)
      g_warning("a window is not saved: another one has its name. Give it one of its own.");
    object->has_complained = true;
  } else {
    object->handle = number;
    tell_if_withheld(asked->session, object, result);
  }
  if (object->is_closed && object->handle) {
    unregister(asked->session, object);
  } else if (object->handle) {
    push(asked->session, object);
  } else if (is_ending_broker(failure)) {
    register_object(asked->session, object);
  } else if (object->is_closed && !is_lost(failure)) {
    g_ptr_array_remove(asked->session->objects, object);
  } else {
    complain_once(object, failure);
  }
  end_question(asked);
}

static void register_object(RestorationGtkSession *self, saved_object *object) {
  if (!self->handle || object->is_registering) return;
  question *asked = asking(self, object);
  object->is_registering = restoration_send(
      self->handle, "registerObjectForStateRestoration", json_incref(object->params), take_registration, asked, NULL);
  if (!object->is_registering) end_question(asked);
}

static void take_encode(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  question *asked = data;
  saved_object *object = asked->object;
  object->is_pushing = false;
  object->has_complained &= !result;
  /* Nothing was stored: it is sent again when the broker asks for it. */
  if (!result || json_is_false(json_object_get(result, "included"))) g_clear_pointer(&object->pushed, free);
  if (!result) {
    bool is_unknown =
        failure && (strcmp(failure->kind, "unknownObject") == 0 || strcmp(failure->kind, "replaced") == 0);
    if (is_unknown) object->handle = 0;
    if (is_unknown || is_ending_broker(failure)) object->must_push = true;
    else complain_once(object, failure);
  }
  if (object->must_push) push(asked->session, object);
  end_question(asked);
}

static bool may_push(RestorationGtkSession *self, const saved_object *object) {
  return object->owner && self->handle && !self->is_forgotten && !self->is_ending && !self->is_restoring &&
      restoration_fd(self->handle) >= 0;
}

/* Sends the state of a registered object if it has changed. False with `failure` if it cannot be sent. */
static bool send_state(RestorationGtkSession *self, saved_object *object, restoration_failure *failure) {
  question *asked = asking(self, object);
  json_t *state = state_of(self, object);
  char *text = json_dumps(state, JSON_COMPACT);
  bool is_sent = false, must_send = text && g_strcmp0(text, object->pushed) != 0;
  if (must_send && may_push(self, object) && object->handle) {
    json_t *params = json_pack("{s:I, s:O}", "object", object->handle, "state", state);
    is_sent = restoration_send(
        self->handle, "encodeRestorableState", params, take_encode, asked, failure);
    must_send = !is_sent;
  } else {
    must_send = false;
  }
  if (is_sent) {
    free(object->pushed);
    object->pushed = g_steal_pointer(&text);
    object->is_pushing = true;
  } else {
    end_question(asked);
  }
  free(text);
  json_decref(state);
  return !must_send;
}

static void push_now(RestorationGtkSession *self, saved_object *object) {
  restoration_failure failure;
  if (!may_push(self, object)) return;
  g_rc_box_acquire(object); /* a handler may close the window, and run the main loop */
  if (!object->handle) register_object(self, object);
  else if (!send_state(self, object, &failure)) complain_once(object, &failure);
  free_object(object);
}

/* While a state is under way, the next waits for the answer: a frozen broker is sent no more. */
static void push(RestorationGtkSession *self, saved_object *object) {
  object->must_push = object->is_pushing;
  if (!object->is_pushing) push_now(self, object);
}

static void push_all(RestorationGtkSession *self, void push_one(RestorationGtkSession *, saved_object *)) {
  if (self->root) push_one(self, self->root);
  /* Backwards, because handlers may close windows. */
  for (guint i = self->objects->len; i-- > 0;)
    if (i < self->objects->len) push_one(self, self->objects->pdata[i]);
}

/* Answers the broker when somebody saves the application with all its processes: what has changed is pushed before. */
static json_t *answer_encode(restoration *handle, const char *method, json_t *params, void *data) {
  (void)handle;
  (void)method;
  json_t *states = json_array(), *each;
  size_t index;
  json_array_foreach(json_object_get(params, "objects"), index, each) {
    json_int_t number = json_integer_value(json_object_get(each, "object"));
    saved_object *object = object_with(data, number);
    restoration_failure failure;
    if (!object || !may_push(data, object) || send_state(data, object, &failure))
      json_array_append_new(states, json_pack("{s:I, s:b}", "object", number, "unchanged", 1));
    else
      json_array_append_new(states, json_pack("{s:I, s:s}", "object", number, "error", failure.message));
  }
  return json_pack("{s:o}", "states", states);
}

static void discard(RestorationGtkSession *self);

static void take_discard(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  RestorationGtkSession *self = data;
  if (is_ending_broker(failure)) {
    discard(self);
  } else if (!is_lost(failure)) { /* otherwise it is sent again when the session is resumed */
    self->must_discard = false;
    if (failure) complain("what is saved is not forgotten", failure);
  }
  g_object_unref(self);
}

static void discard(RestorationGtkSession *self) {
  json_t *params = json_pack("{s:s}", "reason", "forget");
  g_object_ref(self);
  if (!restoration_send(self->handle, "discardApplicationState", params, take_discard, self, NULL))
    g_object_unref(self);
}

static void ignore_answer(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  (void)failure;
  (void)data;
}

/* Not said again after a loss: a resumed session restores nothing. */
static void complete(RestorationGtkSession *self) {
  restoration_send(self->handle, "completeStateRestoration", json_object(), ignore_answer, NULL, NULL);
}

static void go_on(RestorationGtkSession *self, saved_object *object, int result) {
  if (result == 0) { /* the broker has forgotten the session */
    object->handle = 0;
    g_clear_pointer(&object->pushed, free);
  }
  if (object->is_closed && object->handle) unregister(self, object);
  else if ((object->owner || object->is_closed) && !object->handle) register_object(self, object);
}

/* Says to the broker again what it may have missed. */
static void resumed(restoration *handle, int result, void *data) {
  (void)handle;
  RestorationGtkSession *self = data;
  if (self->must_discard) discard(self);
  if (self->root) go_on(self, self->root, result);
  for (guint i = 0; i < self->objects->len; i++) go_on(self, self->objects->pdata[i], result);
  if (result == 0 && self->root && !self->is_restoring) complete(self);
  push_all(self, push);
}

/* -- Objects ---------------------------------------------------------------------------------------------------- */

static saved_object *new_object(gpointer owner, json_t *params) {
  saved_object *object = g_rc_box_new0(saved_object);
  object->owner = owner;
  object->params = params;
  return object;
}

static void clear_object(gpointer data) {
  saved_object *object = data;
  json_decref(object->params);
  json_decref(object->geometry);
  free(object->pushed);
}

/* Gives a reference up. */
static void free_object(gpointer data) { g_rc_box_release_full(data, clear_object); }

/* Waits for the broker; before the application is activated. The state, which is new, or NULL with `failure`. */
static json_t *register_and_decode_once(
    RestorationGtkSession *self, saved_object *object, restoration_failure *failure) {
  json_t *params = json_incref(object->params), *decoded = NULL;
  memset(failure, 0, sizeof *failure);
  json_t *result = restoration_call(self->handle, "registerObjectForStateRestoration", params, start_patience, failure);
  if (result) {
    object->handle = json_integer_value(json_object_get(result, "object"));
    tell_if_withheld(self, object, result);
    params = json_pack("{s:I}", "object", object->handle);
    decoded = restoration_call(self->handle, "decodeRestorableState", params, start_patience, failure);
  }
  json_t *state = json_incref(json_object_get(decoded, "state"));
  json_decref(result);
  json_decref(decoded);
  return state;
}

/* The same, again if the broker is started anew meanwhile. */
static json_t *register_and_decode(
    RestorationGtkSession *self, saved_object *object, restoration_failure *failure) {
  restoration *handle = self->handle;
  json_t *state = register_and_decode_once(self, object, failure);
  for (int i = 0; !state && (is_lost(failure) || is_ending_broker(failure)) && i < restarts_max; i++) {
    if (restoration_fd(handle) < 0) { /* otherwise the next broker reads this connection */
      int result = restoration_resume(handle, start_patience, failure);
      if (result < 0) break;
      resumed(handle, result, self);
    }
    state = register_and_decode_once(self, object, failure);
  }
  return state;
}

/* Of a registration at a saved path; NULL if that is invalid. */
static json_t *params_at(const json_t *path) {
  size_t count = json_array_size(path);
  if (count < 2) return NULL;
  json_t *parent = json_copy((json_t *)path);
  json_array_remove(parent, count - 1);
  return json_pack(
      "{s:O, s:o, s:s, s:i}", "restorationIdentifier", json_array_get(path, count - 1), "restorationParent", parent,
      "kind", "viewController", "awaitParentMilliseconds", start_parent_patience);
}

static bool is_last(const json_t *path, const char *identifier) {
  return g_strcmp0(json_string_value(json_array_get(path, json_array_size(path) - 1)), identifier) == 0;
}

/* Whether a window has the name, or one that is to be restored. */
static bool is_taken(RestorationGtkSession *self, const char *identifier) {
  size_t index;
  json_t *path;
  json_array_foreach(self->saved_windows, index, path) if (is_last(path, identifier)) return true;
  for (guint i = 0; i < self->objects->len; i++) {
    const saved_object *object = self->objects->pdata[i];
    if (g_strcmp0(json_string_value(json_object_get(object->params, "restorationIdentifier")), identifier) == 0)
      return true;
  }
  return false;
}

/* Of the registration of a new window. */
static json_t *params_of(RestorationGtkSession *self, const char *identifier, const char *const *component) {
  char *name = g_strdup(identifier);
  bool is_fresh = !name;
  for (int number = 1; is_fresh && (!name || is_taken(self, name)); number++) {
    g_free(name);
    name = g_strdup_printf("Window-%d", number);
  }
  json_t *parent = json_array();
  if (!component || !*component) json_array_append_new(parent, json_string(self->process));
  for (; component && *component; component++) json_array_append_new(parent, json_string(*component));
  json_t *params = json_pack(
      "{s:s, s:o, s:s, s:i}", "restorationIdentifier", name, "restorationParent", parent, "kind", "viewController",
      "awaitParentMilliseconds", parent_patience);
  if (is_fresh) json_object_set_new(params, "fresh", json_true());
  g_free(name);
  return params;
}

/* -- Saving ----------------------------------------------------------------------------------------------------- */

static gboolean push_later(gpointer data) {
  RestorationGtkSession *self = data;
  self->idle = 0;
  push_all(self, push);
  return G_SOURCE_REMOVE;
}

/**
 * restoration_gtk_session_invalidate:
 * @self: a session
 *
 * Says that something has changed: what differs from what was saved last is saved as soon as the main loop is idle.
 */
void restoration_gtk_session_invalidate(RestorationGtkSession *self) {
  g_return_if_fail(RESTORATION_GTK_IS_SESSION(self));
  if (!self->idle && self->handle) self->idle = g_idle_add(push_later, self);
}

static gboolean autosave(gpointer data) {
  push_all(data, push);
  return G_SOURCE_CONTINUE;
}

static void set_interval(RestorationGtkSession *self, guint seconds) {
  self->interval = seconds;
  g_clear_handle_id(&self->timer, g_source_remove);
  if (seconds && self->handle) self->timer = g_timeout_add_seconds(seconds, autosave, self);
}

/**
 * restoration_gtk_session_save:
 * @self: a session
 *
 * Saves the state of the application and its windows, without waiting until it is on disk. The library does so every
 * #RestorationGtkSession:autosave-interval seconds, after restoration_gtk_session_invalidate() and at the end.
 */
void restoration_gtk_session_save(RestorationGtkSession *self) {
  g_return_if_fail(RESTORATION_GTK_IS_SESSION(self));
  self->is_forgotten = self->is_ending = false;
  push_all(self, push);
}

/**
 * restoration_gtk_session_forget:
 * @self: a session
 *
 * Forgets what is saved of the whole application, also by its other processes, and saves nothing more of this process
 * until restoration_gtk_session_save() is called.
 */
void restoration_gtk_session_forget(RestorationGtkSession *self) {
  g_return_if_fail(RESTORATION_GTK_IS_SESSION(self));
  self->is_forgotten = true;
  if (!self->handle) return;
  if (self->root) g_clear_pointer(&self->root->pushed, free);
  for (guint i = 0; i < self->objects->len; i++)
    g_clear_pointer(&((saved_object *)self->objects->pdata[i])->pushed, free);
  self->must_discard = true;
  discard(self);
}

/* -- The session ------------------------------------------------------------------------------------------------ */

static bool is_registered(const RestorationGtkSession *self) {
  return self->gtk && g_application_get_is_registered(G_APPLICATION(self->gtk));
}

static void open_session(RestorationGtkSession *self) {
  if (self->is_opened || !is_registered(self)) return;
  self->is_opened = true;
  if (!self->application) self->application = g_strdup(g_application_get_application_id(G_APPLICATION(self->gtk)));
  if (!self->application) return;
  restoration_failure failure = {0};
  self->handle = restoration_open(NULL, &failure);
  restoration_session session = {.application = self->application, .process = self->process};
  bool is_begun = self->handle && restoration_serve(self->handle, ENCODE, answer_encode, self) == 0 &&
      restoration_begin(self->handle, &session, start_patience, &failure) == 0;
  /* The broker may end at this very moment, and come back. */
  if (!is_begun && self->handle && is_lost(&failure))
    is_begun = restoration_resume(self->handle, start_patience, &failure) >= 0;
  if (!is_begun) {
    complain("the state of the application is neither restored nor saved", &failure);
    g_clear_pointer(&self->handle, restoration_close);
    return;
  }
  self->source = restoration_source_new(self->handle, NULL, resumed, self);
  g_source_attach(self->source, NULL);
  const char *reason = json_string_value(json_object_get(restoration_found(self->handle), "reason"));
  GEnumClass *reasons = g_type_class_ref(RESTORATION_GTK_TYPE_RESTORE_REASON);
  GEnumValue *known = reason ? g_enum_get_value_by_nick(reasons, reason) : NULL;
  self->reason = known ? (RestorationGtkRestoreReason)known->value : RESTORATION_GTK_RESTORE_REASON_LAUNCH;
  g_type_class_unref(reasons);
  set_interval(self, self->interval);
}

/* Gives a window what GTK 4.24 would: its size, and whether it fills the screen. A program gives its windows a default
 * size at any time before they are shown: this comes after it. */
static void restore_geometry(RestorationGtkSession *self, GtkWidget *window) {
  const saved_object *object = object_of(self, window);
  if (!object || !object->geometry) return;
  json_int_t width = json_integer_value(json_object_get(object->geometry, "width"));
  json_int_t height = json_integer_value(json_object_get(object->geometry, "height"));
  if (width > 0 && height > 0 && width <= G_MAXINT16 && height <= G_MAXINT16)
    gtk_window_set_default_size(GTK_WINDOW(window), (int)width, (int)height);
  const json_t *maximized = json_object_get(object->geometry, "maximized");
  const json_t *fullscreen = json_object_get(object->geometry, "fullscreen");
  if (json_is_true(maximized)) gtk_window_maximize(GTK_WINDOW(window));
  if (json_is_false(maximized)) gtk_window_unmaximize(GTK_WINDOW(window));
  if (json_is_true(fullscreen)) gtk_window_fullscreen(GTK_WINDOW(window));
  if (json_is_false(fullscreen)) gtk_window_unfullscreen(GTK_WINDOW(window));
}

/* From now on the window has a geometry of its own. */
static void window_mapped(RestorationGtkSession *self, GtkWidget *window) {
  restore_geometry(self, window);
  saved_object *object = object_of(self, window);
  if (object) g_clear_pointer(&object->geometry, json_decref);
  g_signal_handlers_disconnect_by_func(window, restore_geometry, self);
  g_signal_handlers_disconnect_by_func(window, window_mapped, self);
}

/* Before the window is shown for the first time, which is when it is realized, unless the program does that earlier. */
static void restore_geometry_when_shown(RestorationGtkSession *self, GtkWidget *window) {
  if (gtk_widget_get_mapped(window)) {
    window_mapped(self, window);
  } else {
    g_signal_connect_object(window, "realize", G_CALLBACK(restore_geometry), self, G_CONNECT_SWAPPED);
    g_signal_connect_object(window, "map", G_CALLBACK(window_mapped), self, G_CONNECT_SWAPPED);
  }
}

/* Has the program make a window; restoration_gtk_session_add_window gives it the place of the saved one. False if the
 * session must end. */
static bool restore_window(RestorationGtkSession *self, const json_t *path) {
  json_t *params = params_at(path);
  if (!params) return true;
  saved_object *object = self->restoring = new_object(NULL, params);
  restoration_failure failure;
  json_t *saved = register_and_decode(self, object, &failure);
  if (!saved) {
    complain("a window is not restored", &failure);
    self->restoring = NULL;
    g_ptr_array_add(self->objects, object); /* keeps the name */
    return failure.code < -1000 && !is_ending_broker(&failure);
  }
  GVariant *state = state_of_json(json_object_get(saved, "state"));
  object->geometry = json_incref(json_object_get(saved, "gtk"));
  g_signal_emit(self, signals[RESTORE_WINDOW], 0, self->reason, state);
  g_variant_unref(state);
  json_decref(saved);
  if (self->restoring) { /* the program does not want the window */
    object->is_closed = true;
    g_ptr_array_add(self->objects, object);
    unregister(self, object);
  }
  self->restoring = NULL;
  return true;
}

static bool restore_windows(RestorationGtkSession *self, json_t *paths) {
  size_t index;
  json_t *path;
  self->saved_windows = paths;
  bool is_restored = true;
  json_array_foreach(paths, index, path) is_restored = is_restored && restore_window(self, path);
  self->saved_windows = NULL;
  return is_restored;
}

/* As GTK 4.24, before the application is activated for the first time. False if what is saved could not be read. */
static bool restore(RestorationGtkSession *self) {
  self->root = new_object(
      self, json_pack("{s:s, s:s}", "restorationIdentifier", self->process, "kind", "viewController"));
  restoration_failure failure;
  gint64 end = g_get_monotonic_time() + start_path_patience * 1000;
  json_t *saved = register_and_decode(self, self->root, &failure);
  while (!saved && strcmp(failure.kind, "duplicatePath") == 0 && g_get_monotonic_time() < end) {
    restoration_wait(self->handle, start_path_pause);
    saved = register_and_decode(self, self->root, &failure);
  }
  bool is_restored = saved;
  if (!saved) complain("the state of the application is neither restored nor saved", &failure);
  if (json_is_object(saved)) {
    /* Then a former process of this run has saved it, and was killed after this session had begun. */
    if (self->reason == RESTORATION_GTK_RESTORE_REASON_PRISTINE) self->reason = RESTORATION_GTK_RESTORE_REASON_RECOVER;
    const char *session_id = json_string_value(json_object_get(json_object_get(saved, "gtk"), "session-id"));
    if (session_id) g_object_set(self, "session-id", session_id, NULL);
    GVariant *state = state_of_json(json_object_get(saved, "state"));
    gboolean handled;
    g_signal_emit(self, signals[RESTORE_STATE], 0, self->reason, state, &handled);
    g_variant_unref(state);
    is_restored = restore_windows(self, json_object_get(saved, "windows"));
  }
  json_decref(saved);
  if (is_restored) complete(self);
  return is_restored;
}

static void end_session(RestorationGtkSession *self) {
  g_clear_handle_id(&self->idle, g_source_remove);
  g_clear_handle_id(&self->timer, g_source_remove);
  if (self->source) g_source_destroy(self->source);
  g_clear_pointer(&self->source, g_source_unref);
  if (self->handle && restoration_token(self->handle))
    restoration_notify(self->handle, "goodbye", json_pack("{s:s}", "reason", "restart"), NULL);
  g_clear_pointer(&self->handle, restoration_close);
  g_clear_pointer(&self->root, free_object);
  g_ptr_array_set_size(self->objects, 0);
}

static void restore_once(RestorationGtkSession *self) {
  if (self->is_restored || !is_registered(self)) return;
  open_session(self);
  self->is_restored = self->is_restoring = true;
  /* Without what is saved, saving would replace it. */
  if (self->handle && !restore(self)) end_session(self);
  self->is_restoring = false;
  restoration_gtk_session_invalidate(self);
}

static bool is_registering(const RestorationGtkSession *self) {
  for (guint i = 0; i < self->objects->len; i++)
    if (((const saved_object *)self->objects->pdata[i])->is_registering) return true;
  return false;
}

/* A window that was opened a moment ago can be saved only when it is registered. */
static void await_registrations(const RestorationGtkSession *self) {
  gint64 end = g_get_monotonic_time() + end_patience * 1000, left = end_patience;
  while (left > 0 && is_registering(self) && restoration_wait(self->handle, (int)left) >= 0)
    left = (end - g_get_monotonic_time()) / 1000;
}

static void end(RestorationGtkSession *self) {
  if (!self->handle) return;
  /* The broker may have ended and be back already. */
  if (restoration_dispatch(self->handle) < 0) {
    int result = restoration_resume(self->handle, 0, NULL);
    if (result >= 0) resumed(self->handle, result, self);
  }
  await_registrations(self);
  push_all(self, push_now);
  self->is_ending = true;
  restoration_goodbye(self->handle, "restart", end_patience, NULL);
  end_session(self);
}

static guint count_windows(const RestorationGtkSession *self) {
  guint count = 0;
  for (guint i = 0; i < self->objects->len; i++) count += ((const saved_object *)self->objects->pdata[i])->owner != NULL;
  return count;
}

/* Without waiting. The list of windows goes before: a program that is killed in between would get an empty window. */
static void close_object(RestorationGtkSession *self, saved_object *object) {
  g_rc_box_acquire(object); /* a handler may end the application */
  object->owner = NULL;
  object->is_closed = true;
  if (!self->is_ending && self->root) push_now(self, self->root);
  if (self->handle && object->handle && !self->is_ending) unregister(self, object);
  else if (!object->is_registering) g_ptr_array_remove(self->objects, object);
  free_object(object);
}

/* A window that the user closes is not restored, unless the application ends with it. */
static void window_removed(RestorationGtkSession *self, GtkWindow *window) {
  saved_object *object = self->handle && !self->is_ending ? object_of(self, window) : NULL;
  if (object && count_windows(self) == 1) {
    push_all(self, push_now);
    self->is_ending = count_windows(self) == 1; /* a handler may open another one */
  }
  /* A handler may have ended the application. */
  if (object && object_of(self, window) == object) close_object(self, object);
}

/**
 * restoration_gtk_session_add_window:
 * @self: a session
 * @window: a window of the application
 * @identifier: (nullable): the window's name below its parent, or %NULL for `Window-1` and so on
 * @parent: (nullable) (array zero-terminated=1): the path of the object that the window is below, which may be another
 *   process's, or %NULL for the root object of this process
 *
 * Saves a window from now on, until it is closed, by #RestorationGtkSession::save-window. In a handler of
 * #RestorationGtkSession::restore-window it is the saved window: it has the path of that one, whatever is given here,
 * and when it is shown for the first time it gets its size.
 */
void restoration_gtk_session_add_window(
    RestorationGtkSession *self, GtkWindow *window, const char *identifier, const char *const *parent) {
  g_return_if_fail(RESTORATION_GTK_IS_SESSION(self));
  g_return_if_fail(GTK_IS_WINDOW(window));
  if (!self->gtk) return;
  gtk_window_set_application(window, self->gtk);
  if (object_of(self, window)) return;
  restore_once(self);
  if (!self->handle) return;
  saved_object *object = g_steal_pointer(&self->restoring);
  if (object) {
    object->owner = window;
  } else {
    object = new_object(window, params_of(self, identifier, parent));
    register_object(self, object);
    json_object_del(object->params, "fresh");
  }
  g_ptr_array_add(self->objects, object);
  self->is_ending = false;
  if (object->geometry) restore_geometry_when_shown(self, GTK_WIDGET(window));
  restoration_gtk_session_invalidate(self);
}

/**
 * restoration_gtk_session_path_of:
 * @self: a session
 * @window: a window
 *
 * The path at which a window is saved, for windows of other processes that are to be below it.
 *
 * Returns: (transfer full) (nullable) (array zero-terminated=1): its components, or %NULL if it is not saved
 */
char **restoration_gtk_session_path_of(RestorationGtkSession *self, GtkWindow *window) {
  g_return_val_if_fail(RESTORATION_GTK_IS_SESSION(self), NULL);
  const saved_object *object = object_of(self, window);
  if (!object) return NULL;
  json_t *path = path_of(object);
  char **components = g_new0(char *, json_array_size(path) + 1);
  for (size_t i = 0; i < json_array_size(path); i++)
    components[i] = g_strdup(json_string_value(json_array_get(path, i)));
  json_decref(path);
  return components;
}

/* An application is gone without an end if it was never run. */
static void application_gone(gpointer data, GObject *application) {
  (void)application;
  RestorationGtkSession *self = data;
  end_session(self);
  self->gtk = NULL;
}

static void set_property(GObject *object, guint property, const GValue *value, GParamSpec *spec) {
  RestorationGtkSession *self = RESTORATION_GTK_SESSION(object);
  char **text = property == PROP_APPLICATION ? &self->application
      : property == PROP_PROCESS             ? &self->process
                                             : &self->session_id;
  switch (property) {
    case PROP_GTK: self->gtk = g_value_get_object(value); break;
    case PROP_AUTOSAVE_INTERVAL: set_interval(self, g_value_get_uint(value)); break;
    case PROP_APPLICATION:
    case PROP_PROCESS:
    case PROP_SESSION_ID:
      g_free(*text);
      *text = g_value_dup_string(value);
      restoration_gtk_session_invalidate(self);
      break;
    default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
}

static void get_property(GObject *object, guint property, GValue *value, GParamSpec *spec) {
  const RestorationGtkSession *self = RESTORATION_GTK_SESSION(object);
  switch (property) {
    case PROP_GTK: g_value_set_object(value, self->gtk); break;
    case PROP_APPLICATION: g_value_set_string(value, self->application); break;
    case PROP_PROCESS: g_value_set_string(value, self->process); break;
    case PROP_AUTOSAVE_INTERVAL: g_value_set_uint(value, self->interval); break;
    case PROP_SESSION_ID: g_value_set_string(value, self->session_id); break;
    default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
}

static void constructed(GObject *object) {
  RestorationGtkSession *self = RESTORATION_GTK_SESSION(object);
  G_OBJECT_CLASS(restoration_gtk_session_parent_class)->constructed(object);
  if (self->gtk && g_object_get_data(G_OBJECT(self->gtk), OWNED)) {
    g_critical("the application has a session already: use that one");
    self->gtk = NULL;
  }
  if (!self->gtk) return;
  g_object_set_data_full(G_OBJECT(self->gtk), OWNED, g_object_ref(self), g_object_unref);
  g_object_weak_ref(G_OBJECT(self->gtk), application_gone, self);
  const struct {
    const char *signal;
    GCallback handler;
  } handlers[] = {
      {"startup", G_CALLBACK(open_session)}, {"shutdown", G_CALLBACK(end)}, {"activate", G_CALLBACK(restore_once)},
      {"open", G_CALLBACK(restore_once)}, {"window-removed", G_CALLBACK(window_removed)}};
  for (size_t i = 0; i < G_N_ELEMENTS(handlers); i++)
    g_signal_connect_object(self->gtk, handlers[i].signal, handlers[i].handler, self, G_CONNECT_SWAPPED);
}

static void finalize(GObject *object) {
  RestorationGtkSession *self = RESTORATION_GTK_SESSION(object);
  end_session(self);
  if (self->gtk) g_object_weak_unref(G_OBJECT(self->gtk), application_gone, self);
  g_ptr_array_unref(self->objects);
  g_free(self->application);
  g_free(self->process);
  g_free(self->session_id);
  G_OBJECT_CLASS(restoration_gtk_session_parent_class)->finalize(object);
}

static void restoration_gtk_session_init(RestorationGtkSession *self) {
  self->objects = g_ptr_array_new_with_free_func(free_object);
}

static void make_signals(void) {
  /**
   * RestorationGtkSession::save-state:
   * @self: the session
   * @dict: a dictionary of type a{sv}
   *
   * Emitted when the application is saved: the handler adds what is to be saved of this process to @dict.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  signals[SAVE_STATE] = g_signal_new(
      "save-state", RESTORATION_GTK_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL, NULL,
      G_TYPE_BOOLEAN, 1, G_TYPE_VARIANT_DICT);

  /**
   * RestorationGtkSession::restore-state:
   * @self: the session
   * @reason: why state is restored
   * @state: an a{sv} as a handler of #RestorationGtkSession::save-state has made it
   *
   * Emitted before the application is activated for the first time, if something is saved.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  signals[RESTORE_STATE] = g_signal_new(
      "restore-state", RESTORATION_GTK_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL,
      NULL, G_TYPE_BOOLEAN, 2, RESTORATION_GTK_TYPE_RESTORE_REASON, G_TYPE_VARIANT);

  /**
   * RestorationGtkSession::restore-window:
   * @self: the session
   * @reason: why state is restored
   * @state: an a{sv} as a handler of #RestorationGtkSession::save-window has made it
   *
   * Emitted for each saved window, the most recently used first: the handler makes a window, adds it with
   * restoration_gtk_session_add_window(), applies the state and presents it.
   */
  signals[RESTORE_WINDOW] = g_signal_new(
      "restore-window", RESTORATION_GTK_TYPE_SESSION, G_SIGNAL_RUN_FIRST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
      RESTORATION_GTK_TYPE_RESTORE_REASON, G_TYPE_VARIANT);

  /**
   * RestorationGtkSession::save-window:
   * @self: the session
   * @window: a window that was added
   * @dict: a dictionary of type a{sv}
   *
   * Emitted when a window is saved: the handler adds what is to be saved of it to @dict. Its size, and whether it is
   * maximized, the library saves itself.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  signals[SAVE_WINDOW] = g_signal_new(
      "save-window", RESTORATION_GTK_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL, NULL,
      G_TYPE_BOOLEAN, 2, GTK_TYPE_WINDOW, G_TYPE_VARIANT_DICT);
}

static void restoration_gtk_session_class_init(RestorationGtkSessionClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->constructed = constructed;
  object_class->finalize = finalize;
  make_signals();

  /**
   * RestorationGtkSession:application:
   *
   * The application whose windows are saved. It keeps the session, and has only one.
   */
  props[PROP_GTK] = g_param_spec_object(
      "application", NULL, NULL, GTK_TYPE_APPLICATION,
      G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkSession:restoration-application:
   *
   * The name of the application for the broker, which all its processes give. By default the application id. Set it
   * before the application is run.
   */
  props[PROP_APPLICATION] = g_param_spec_string(
      "restoration-application", NULL, NULL, NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkSession:restoration-process:
   *
   * The role of this process in the application, and the identifier of the root object that its windows are below. Set
   * it before the application is run.
   */
  props[PROP_PROCESS] = g_param_spec_string(
      "restoration-process", NULL, NULL, "main", G_PARAM_READWRITE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkSession:autosave-interval:
   *
   * The number of seconds between automatic saves; 0 for none.
   */
  props[PROP_AUTOSAVE_INTERVAL] = g_param_spec_uint(
      "autosave-interval", NULL, NULL, 0, G_MAXUINT, 15,
      G_PARAM_READWRITE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkSession:session-id:
   *
   * A place for what the compositor calls this session (xdg-session-management): saved with the application, and set
   * again before #RestorationGtkSession::restore-state.
   */
  props[PROP_SESSION_ID] = g_param_spec_string(
      "session-id", NULL, NULL, NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties(object_class, PROPS, props);
}

/**
 * restoration_gtk_session_new:
 * @application: an application
 *
 * Saves and restores the windows of any #GtkApplication, such as one of libadwaita. Call it before the application is
 * run, and before handlers of its signals are connected, which then run after windows were restored.
 *
 * Returns: (transfer full): a new session, which the application keeps as well
 */
RestorationGtkSession *restoration_gtk_session_new(GtkApplication *application) {
  return g_object_new(RESTORATION_GTK_TYPE_SESSION, "application", application, NULL);
}

/* -- JSON ------------------------------------------------------------------------------------------------------- */

/**
 * restoration_gtk_state_to_json:
 * @state: an a{sv}
 *
 * Writes a state as the library saves it.
 *
 * Returns: (transfer full): JSON
 */
char *restoration_gtk_state_to_json(GVariant *state) {
  g_return_val_if_fail(g_variant_is_of_type(state, G_VARIANT_TYPE_VARDICT), NULL);
  json_t *json = json_of_state(state);
  char *text = json_dumps(json, JSON_COMPACT), *copy = g_strdup(text);
  free(text);
  json_decref(json);
  return copy;
}

/**
 * restoration_gtk_state_from_json:
 * @json: a JSON object
 * @error: what is wrong with it
 *
 * Reads a state.
 *
 * Returns: (transfer full): an a{sv}
 */
GVariant *restoration_gtk_state_from_json(const char *json, GError **error) {
  json_error_t wrong;
  json_t *read = json_loads(json, JSON_ALLOW_NUL, &wrong);
  if (!json_is_object(read)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s", read ? "the state is no object" : wrong.text);
    json_decref(read);
    return NULL;
  }
  GVariant *state = state_of_json(read);
  json_decref(read);
  return state;
}
