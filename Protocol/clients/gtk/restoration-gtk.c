/* SPDX-License-Identifier: Apache-2.0 */
#include "restoration-gtk.h"

#include <stdbool.h>
#include <string.h>

#include "restoration-glib.h"
#include "restoration.h"
#include "variant.h"

#define ENCODE "encodeRestorableStateWithCoder"

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
  gpointer owner;      /* the application, or a window; NULL without one, and the name stays taken */
  bool is_closed;      /* the window was closed, and the broker has not answered yet that it is unregistered */
  json_t *params;      /* of its registration */
  json_int_t handle;   /* 0 until it is registered */
  char *pushed;        /* the text that the broker has or gets */
  bool is_registering, is_pushing;
  bool must_push;      /* it may have changed since it was pushed */
  bool has_complained;
  json_t *geometry;    /* to be given to the window when it is shown for the first time, or NULL */
} saved_object;

typedef struct RestorationGtkApplicationPrivate {
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
} RestorationGtkApplicationPrivate;

typedef struct RestorationGtkApplicationWindowPrivate {
  char *identifier;
  char **parent;
} RestorationGtkApplicationWindowPrivate;

G_DEFINE_TYPE_WITH_PRIVATE(
    RestorationGtkApplication, restoration_gtk_application, GTK_TYPE_APPLICATION)
G_DEFINE_TYPE_WITH_PRIVATE(
    RestorationGtkApplicationWindow, restoration_gtk_application_window, GTK_TYPE_APPLICATION_WINDOW)

enum { SAVE_STATE, RESTORE_STATE, RESTORE_WINDOW, SIGNALS };
static guint signals[SIGNALS], window_save_state;

enum { PROP_0, PROP_APPLICATION, PROP_PROCESS, PROP_AUTOSAVE_INTERVAL, PROP_SESSION_ID, PROPS };
static GParamSpec *props[PROPS];

enum { PROP_WINDOW_0, PROP_IDENTIFIER, PROP_PARENT, WINDOW_PROPS };
static GParamSpec *window_props[WINDOW_PROPS];

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

static RestorationGtkApplicationPrivate *private_of(gpointer application) {
  return restoration_gtk_application_get_instance_private(application);
}

static RestorationGtkApplicationWindowPrivate *window_private(gpointer window) {
  return restoration_gtk_application_window_get_instance_private(window);
}

/* -- What is saved ---------------------------------------------------------------------------------------------- */

static json_t *emitted(gpointer object, guint signal) {
  gboolean handled;
  GVariantDict *dict = g_variant_dict_new(NULL);
  g_signal_emit(object, signal, 0, dict, &handled);
  GVariant *state = g_variant_ref_sink(g_variant_dict_end(dict));
  json_t *json = json_of_state(state);
  g_variant_unref(state);
  g_variant_dict_unref(dict);
  return json;
}

static saved_object *object_of(RestorationGtkApplication *application, gpointer owner) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (owner == application) return self->root;
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

static json_t *windows_of(RestorationGtkApplication *application) {
  json_t *paths = json_array();
  for (GList *each = gtk_application_get_windows(GTK_APPLICATION(application)); each; each = each->next) {
    const saved_object *object = object_of(application, each->data);
    if (object) json_array_append_new(paths, path_of(object));
  }
  /* Windows that could not be restored have another chance. */
  const GPtrArray *objects = private_of(application)->objects;
  for (guint i = 0; i < objects->len; i++) {
    const saved_object *object = objects->pdata[i];
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
static json_t *state_of(RestorationGtkApplication *application, const saved_object *object) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (object->owner == application)
    return json_pack(
        "{s:o, s:o, s:{s:s*}}", "state", emitted(application, signals[SAVE_STATE]), "windows", windows_of(application),
        "gtk", "session-id", self->session_id);
  GtkWindow *window = g_object_ref(object->owner); /* a handler may close it */
  json_t *state = emitted(window, window_save_state);
  json_t *geometry = object->geometry ? json_incref(object->geometry) : geometry_of(window);
  g_object_unref(window);
  return json_pack("{s:o, s:o}", "state", state, "gtk", geometry);
}

/* -- Conversation with the broker ------------------------------------------------------------------------------- */

static void push(RestorationGtkApplication *application, saved_object *object);
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

/* `data` of a call about an object, whose window may be closed when the answer comes. */
typedef struct question {
  RestorationGtkApplication *application;
  saved_object *object;
} question;

static question *asking(RestorationGtkApplication *application, saved_object *object) {
  question *asked = g_new(question, 1);
  *asked = (question){g_object_ref(application), g_rc_box_acquire(object)};
  return asked;
}

static void end_question(question *asked) {
  g_object_unref(asked->application);
  free_object(asked->object);
  g_free(asked);
}

/* The object with a handle, unless its window was closed. */
static saved_object *object_with(RestorationGtkApplication *application, json_int_t handle) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (self->root && self->root->handle == handle) return self->root;
  for (guint i = 0; i < self->objects->len; i++) {
    saved_object *object = self->objects->pdata[i];
    if (object->handle == handle && !object->is_closed) return object;
  }
  return NULL;
}

static void unregister(RestorationGtkApplication *application, saved_object *object);

static void take_unregistration(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  question *asked = data;
  if (is_ending_broker(failure)) unregister(asked->application, asked->object);
  else if (!is_lost(failure)) g_ptr_array_remove(private_of(asked->application)->objects, asked->object);
  end_question(asked);
}

/* Without waiting. After a loss of the broker it is said again. */
static void unregister(RestorationGtkApplication *application, saved_object *object) {
  question *asked = asking(application, object);
  json_t *params = json_pack("{s:I}", "object", object->handle);
  if (!restoration_send(
          private_of(application)->handle, "unregisterObject", params, take_unregistration, asked, NULL))
    end_question(asked);
}

/* Without waiting. */
static void register_object(RestorationGtkApplication *application, saved_object *object);

static void take_registration(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  question *asked = data;
  saved_object *object = asked->object;
  json_int_t number = json_integer_value(json_object_get(result, "object"));
  bool is_shared = number && object_with(asked->application, number);
  object->is_registering = false;
  if (is_shared) {
    if (!object->has_complained && !object->is_closed)
      g_warning("a window is not saved: another one has its name. Give it one of its own.");
    object->has_complained = true;
  } else {
    object->handle = number;
  }
  if (object->is_closed && object->handle) {
    unregister(asked->application, object);
  } else if (object->handle) {
    push(asked->application, object);
  } else if (is_ending_broker(failure)) {
    register_object(asked->application, object);
  } else if (object->is_closed && !is_lost(failure)) {
    g_ptr_array_remove(private_of(asked->application)->objects, object);
  } else {
    complain_once(object, failure);
  }
  end_question(asked);
}

static void register_object(RestorationGtkApplication *application, saved_object *object) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (!self->handle || object->is_registering) return;
  question *asked = asking(application, object);
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
  if (!result) {
    g_clear_pointer(&object->pushed, free);
    bool is_unknown =
        failure && (strcmp(failure->kind, "unknownObject") == 0 || strcmp(failure->kind, "replaced") == 0);
    if (is_unknown) object->handle = 0;
    if (is_unknown || is_ending_broker(failure)) object->must_push = true;
    else complain_once(object, failure);
  }
  if (object->must_push) push(asked->application, object);
  end_question(asked);
}

static bool may_push(RestorationGtkApplication *application, const saved_object *object) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  return object->owner && self->handle && !self->is_forgotten && !self->is_ending && !self->is_restoring &&
      restoration_fd(self->handle) >= 0;
}

/* Sends the state of a registered object if it has changed. False with `failure` if it cannot be sent. */
static bool send_state(RestorationGtkApplication *application, saved_object *object, restoration_failure *failure) {
  question *asked = asking(application, object);
  json_t *state = state_of(application, object);
  char *text = json_dumps(state, JSON_COMPACT);
  bool is_sent = false, must_send = text && g_strcmp0(text, object->pushed) != 0;
  if (must_send && may_push(application, object) && object->handle) {
    json_t *params = json_pack("{s:I, s:O}", "object", object->handle, "state", state);
    is_sent = restoration_send(
        private_of(application)->handle, "encodeRestorableState", params, take_encode, asked, failure);
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

static void push_now(RestorationGtkApplication *application, saved_object *object) {
  restoration_failure failure;
  if (!may_push(application, object)) return;
  g_rc_box_acquire(object); /* a handler may close the window, and run the main loop */
  if (!object->handle) register_object(application, object);
  else if (!send_state(application, object, &failure)) complain_once(object, &failure);
  free_object(object);
}

/* While a state is under way, the next waits for the answer: a frozen broker is sent no more. */
static void push(RestorationGtkApplication *application, saved_object *object) {
  object->must_push = object->is_pushing;
  if (!object->is_pushing) push_now(application, object);
}

static void push_all(
    RestorationGtkApplication *application, void push_one(RestorationGtkApplication *, saved_object *)) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (self->root) push_one(application, self->root);
  /* Backwards, because handlers may close windows. */
  for (guint i = self->objects->len; i-- > 0;)
    if (i < self->objects->len) push_one(application, self->objects->pdata[i]);
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

static void discard(RestorationGtkApplication *application);

static void take_discard(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  if (is_ending_broker(failure)) {
    discard(data);
  } else if (!is_lost(failure)) { /* otherwise it is sent again when the session is resumed */
    private_of(data)->must_discard = false;
    if (failure) complain("what is saved is not forgotten", failure);
  }
  g_object_unref(data);
}

static void discard(RestorationGtkApplication *application) {
  json_t *params = json_pack("{s:s}", "reason", "forget");
  gpointer data = g_object_ref(application);
  if (!restoration_send(
          private_of(application)->handle, "discardApplicationState", params, take_discard, data, NULL))
    g_object_unref(data);
}

static void ignore_answer(restoration *handle, json_t *result, const restoration_failure *failure, void *data) {
  (void)handle;
  (void)result;
  (void)failure;
  (void)data;
}

/* Not said again after a loss: a resumed session restores nothing. */
static void complete(RestorationGtkApplication *application) {
  restoration *handle = private_of(application)->handle;
  restoration_send(handle, "completeStateRestoration", json_object(), ignore_answer, NULL, NULL);
}

static void go_on(RestorationGtkApplication *application, saved_object *object, int result) {
  if (result == 0) { /* the broker has forgotten the session */
    object->handle = 0;
    g_clear_pointer(&object->pushed, free);
  }
  if (object->is_closed && object->handle) unregister(application, object);
  else if ((object->owner || object->is_closed) && !object->handle) register_object(application, object);
}

/* Says to the broker again what it may have missed. */
static void resumed(restoration *handle, int result, void *data) {
  (void)handle;
  RestorationGtkApplicationPrivate *self = private_of(data);
  if (self->must_discard) discard(data);
  if (self->root) go_on(data, self->root, result);
  for (guint i = 0; i < self->objects->len; i++) go_on(data, self->objects->pdata[i], result);
  if (result == 0 && self->root && !self->is_restoring) complete(data);
  push_all(data, push);
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
    RestorationGtkApplication *application, saved_object *object, restoration_failure *failure) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  json_t *params = json_incref(object->params), *decoded = NULL;
  memset(failure, 0, sizeof *failure);
  json_t *result = restoration_call(self->handle, "registerObjectForStateRestoration", params, start_patience, failure);
  if (result) {
    object->handle = json_integer_value(json_object_get(result, "object"));
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
    RestorationGtkApplication *application, saved_object *object, restoration_failure *failure) {
  restoration *handle = private_of(application)->handle;
  json_t *state = register_and_decode_once(application, object, failure);
  for (int i = 0; !state && (is_lost(failure) || is_ending_broker(failure)) && i < restarts_max; i++) {
    if (restoration_fd(handle) < 0) { /* otherwise the next broker reads this connection */
      int result = restoration_resume(handle, start_patience, failure);
      if (result < 0) break;
      resumed(handle, result, application);
    }
    state = register_and_decode_once(application, object, failure);
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
static bool is_taken(RestorationGtkApplication *application, const char *identifier) {
  RestorationGtkApplicationPrivate *self = private_of(application);
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
static json_t *params_of(RestorationGtkApplication *application, GtkWindow *window) {
  char *name = g_strdup(window_private(window)->identifier);
  bool is_fresh = !name;
  for (int number = 1; is_fresh && (!name || is_taken(application, name)); number++) {
    g_free(name);
    name = g_strdup_printf("Window-%d", number);
  }
  json_t *parent = json_array();
  char **component = window_private(window)->parent;
  if (!component || !*component) json_array_append_new(parent, json_string(private_of(application)->process));
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
  private_of(data)->idle = 0;
  push_all(data, push);
  return G_SOURCE_REMOVE;
}

/**
 * restoration_gtk_application_invalidate:
 * @application: an application
 *
 * Says that something has changed: what differs from what was saved last is saved as soon as the main loop is idle.
 */
void restoration_gtk_application_invalidate(RestorationGtkApplication *application) {
  g_return_if_fail(RESTORATION_GTK_IS_APPLICATION(application));
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (!self->idle && self->handle) self->idle = g_idle_add(push_later, application);
}

static gboolean autosave(gpointer data) {
  push_all(data, push);
  return G_SOURCE_CONTINUE;
}

static void set_interval(RestorationGtkApplication *application, guint seconds) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  self->interval = seconds;
  g_clear_handle_id(&self->timer, g_source_remove);
  if (seconds && self->handle) self->timer = g_timeout_add_seconds(seconds, autosave, application);
}

/**
 * restoration_gtk_application_save:
 * @application: an application
 *
 * Saves the state of the application and its windows, without waiting until it is on disk. The library does so every
 * #RestorationGtkApplication:autosave-interval seconds, after restoration_gtk_application_invalidate() and at the end.
 */
void restoration_gtk_application_save(RestorationGtkApplication *application) {
  g_return_if_fail(RESTORATION_GTK_IS_APPLICATION(application));
  private_of(application)->is_forgotten = private_of(application)->is_ending = false;
  push_all(application, push);
}

/**
 * restoration_gtk_application_forget:
 * @application: an application
 *
 * Forgets what is saved of the whole application, also by its other processes, and saves nothing more of this process
 * until restoration_gtk_application_save() is called.
 */
void restoration_gtk_application_forget(RestorationGtkApplication *application) {
  g_return_if_fail(RESTORATION_GTK_IS_APPLICATION(application));
  RestorationGtkApplicationPrivate *self = private_of(application);
  self->is_forgotten = true;
  if (!self->handle) return;
  if (self->root) g_clear_pointer(&self->root->pushed, free);
  for (guint i = 0; i < self->objects->len; i++)
    g_clear_pointer(&((saved_object *)self->objects->pdata[i])->pushed, free);
  self->must_discard = true;
  discard(application);
}

/* -- The application -------------------------------------------------------------------------------------------- */

static void open_session(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (self->is_opened || !g_application_get_is_registered(G_APPLICATION(application))) return;
  self->is_opened = true;
  if (!self->application) self->application = g_strdup(g_application_get_application_id(G_APPLICATION(application)));
  if (!self->application) return;
  restoration_failure failure = {0};
  self->handle = restoration_open(NULL, &failure);
  restoration_session session = {.application = self->application, .process = self->process};
  bool is_begun = self->handle && restoration_serve(self->handle, ENCODE, answer_encode, application) == 0 &&
      restoration_begin(self->handle, &session, start_patience, &failure) == 0;
  /* The broker may end at this very moment, and come back. */
  if (!is_begun && self->handle && is_lost(&failure))
    is_begun = restoration_resume(self->handle, start_patience, &failure) >= 0;
  if (!is_begun) {
    complain("the state of the application is neither restored nor saved", &failure);
    g_clear_pointer(&self->handle, restoration_close);
    return;
  }
  self->source = restoration_source_new(self->handle, NULL, resumed, application);
  g_source_attach(self->source, NULL);
  const char *reason = json_string_value(json_object_get(restoration_found(self->handle), "reason"));
  GEnumClass *reasons = g_type_class_ref(RESTORATION_GTK_TYPE_RESTORE_REASON);
  GEnumValue *known = reason ? g_enum_get_value_by_nick(reasons, reason) : NULL;
  self->reason = known ? (RestorationGtkRestoreReason)known->value : RESTORATION_GTK_RESTORE_REASON_LAUNCH;
  g_type_class_unref(reasons);
  set_interval(application, self->interval);
}

/* Gives a window what GTK 4.24 would: its size, and whether it fills the screen. A program gives its windows a default
 * size at any time before they are shown: this comes after it. */
static void restore_geometry(RestorationGtkApplication *application, GtkWidget *window) {
  const saved_object *object = object_of(application, window);
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
static void window_mapped(RestorationGtkApplication *application, GtkWidget *window) {
  restore_geometry(application, window);
  saved_object *object = object_of(application, window);
  if (object) g_clear_pointer(&object->geometry, json_decref);
  g_signal_handlers_disconnect_by_func(window, restore_geometry, application);
  g_signal_handlers_disconnect_by_func(window, window_mapped, application);
}

/* Before the window is shown for the first time, which is when it is realized, unless the program does that earlier. */
static void restore_geometry_when_shown(RestorationGtkApplication *application, GtkWidget *window) {
  if (gtk_widget_get_mapped(window)) {
    window_mapped(application, window);
  } else {
    g_signal_connect_object(window, "realize", G_CALLBACK(restore_geometry), application, G_CONNECT_SWAPPED);
    g_signal_connect_object(window, "map", G_CALLBACK(window_mapped), application, G_CONNECT_SWAPPED);
  }
}

/* Has the program make a window; window_added gives it the place of the saved one. False if the session must
 * end. */
static bool restore_window(RestorationGtkApplication *application, const json_t *path) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  json_t *params = params_at(path);
  if (!params) return true;
  saved_object *object = self->restoring = new_object(NULL, params);
  restoration_failure failure;
  json_t *saved = register_and_decode(application, object, &failure);
  if (!saved) {
    complain("a window is not restored", &failure);
    self->restoring = NULL;
    g_ptr_array_add(self->objects, object); /* keeps the name */
    return failure.code < -1000 && !is_ending_broker(&failure);
  }
  GVariant *state = state_of_json(json_object_get(saved, "state"));
  object->geometry = json_incref(json_object_get(saved, "gtk"));
  g_signal_emit(application, signals[RESTORE_WINDOW], 0, self->reason, state);
  g_variant_unref(state);
  json_decref(saved);
  if (self->restoring) { /* the program does not want the window */
    object->is_closed = true;
    g_ptr_array_add(self->objects, object);
    unregister(application, object);
  }
  self->restoring = NULL;
  return true;
}

static bool restore_windows(RestorationGtkApplication *application, json_t *paths) {
  size_t index;
  json_t *path;
  private_of(application)->saved_windows = paths;
  bool is_restored = true;
  json_array_foreach(paths, index, path) is_restored = is_restored && restore_window(application, path);
  private_of(application)->saved_windows = NULL;
  return is_restored;
}

/* As GTK 4.24, before the application is activated for the first time. False if what is saved could not be read. */
static bool restore(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  self->root = new_object(
      application, json_pack("{s:s, s:s}", "restorationIdentifier", self->process, "kind", "viewController"));
  restoration_failure failure;
  gint64 end = g_get_monotonic_time() + start_path_patience * 1000;
  json_t *saved = register_and_decode(application, self->root, &failure);
  while (!saved && strcmp(failure.kind, "duplicatePath") == 0 && g_get_monotonic_time() < end) {
    restoration_wait(self->handle, start_path_pause);
    saved = register_and_decode(application, self->root, &failure);
  }
  bool is_restored = saved;
  if (!saved) complain("the state of the application is neither restored nor saved", &failure);
  if (self->reason != RESTORATION_GTK_RESTORE_REASON_PRISTINE && json_is_object(saved)) {
    const char *session_id = json_string_value(json_object_get(json_object_get(saved, "gtk"), "session-id"));
    if (session_id) g_object_set(application, "session-id", session_id, NULL);
    GVariant *state = state_of_json(json_object_get(saved, "state"));
    gboolean handled;
    g_signal_emit(application, signals[RESTORE_STATE], 0, self->reason, state, &handled);
    g_variant_unref(state);
    is_restored = restore_windows(application, json_object_get(saved, "windows"));
  }
  json_decref(saved);
  if (is_restored) complete(application);
  return is_restored;
}

static void end_session(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  g_clear_handle_id(&self->idle, g_source_remove);
  g_clear_handle_id(&self->timer, g_source_remove);
  if (self->source) g_source_destroy(self->source);
  g_clear_pointer(&self->source, g_source_unref);
  g_clear_pointer(&self->handle, restoration_close);
  g_clear_pointer(&self->root, free_object);
  g_ptr_array_set_size(self->objects, 0);
}

static void restore_once(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (self->is_restored || !g_application_get_is_registered(G_APPLICATION(application))) return;
  open_session(application);
  self->is_restored = self->is_restoring = true;
  /* Without what is saved, saving would replace it. */
  if (self->handle && !restore(application)) end_session(application);
  self->is_restoring = false;
  restoration_gtk_application_invalidate(application);
}

static bool is_registering(const RestorationGtkApplicationPrivate *self) {
  for (guint i = 0; i < self->objects->len; i++)
    if (((const saved_object *)self->objects->pdata[i])->is_registering) return true;
  return false;
}

/* A window that was opened a moment ago can be saved only when it is registered. */
static void await_registrations(const RestorationGtkApplicationPrivate *self) {
  gint64 end = g_get_monotonic_time() + end_patience * 1000, left = end_patience;
  while (left > 0 && is_registering(self) && restoration_wait(self->handle, (int)left) >= 0)
    left = (end - g_get_monotonic_time()) / 1000;
}

static void end(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  if (!self->handle) return;
  /* The broker may have ended and be back already. */
  if (restoration_dispatch(self->handle) < 0) {
    int result = restoration_resume(self->handle, 0, NULL);
    if (result >= 0) resumed(self->handle, result, application);
  }
  await_registrations(self);
  push_all(application, push_now);
  self->is_ending = true;
  restoration_goodbye(self->handle, "restart", end_patience, NULL);
  end_session(application);
}

/* The window gets the names under which it is registered. */
static void take_place(GtkWindow *window, const saved_object *object) {
  RestorationGtkApplicationWindowPrivate *self = window_private(window);
  const json_t *parent = json_object_get(object->params, "restorationParent");
  g_free(self->identifier);
  self->identifier = g_strdup(json_string_value(json_object_get(object->params, "restorationIdentifier")));
  g_strfreev(self->parent);
  self->parent = g_new0(char *, json_array_size(parent) + 1);
  for (size_t i = 0; i < json_array_size(parent); i++)
    self->parent[i] = g_strdup(json_string_value(json_array_get(parent, i)));
}

static void window_added(GtkApplication *application, GtkWindow *window) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  RestorationGtkApplication *mine = RESTORATION_GTK_APPLICATION(application);
  if (RESTORATION_GTK_IS_APPLICATION_WINDOW(window)) restore_once(mine);
  if (RESTORATION_GTK_IS_APPLICATION_WINDOW(window) && self->handle) {
    saved_object *object = g_steal_pointer(&self->restoring);
    if (object) {
      object->owner = window;
    } else {
      object = new_object(window, params_of(mine, window));
      register_object(mine, object);
      json_object_del(object->params, "fresh");
    }
    take_place(window, object);
    g_ptr_array_add(self->objects, object);
    if (object->geometry) restore_geometry_when_shown(mine, GTK_WIDGET(window));
    self->is_ending = false;
    restoration_gtk_application_invalidate(mine);
  }
  GTK_APPLICATION_CLASS(restoration_gtk_application_parent_class)->window_added(application, window);
}

static guint count_windows(const RestorationGtkApplicationPrivate *self) {
  guint count = 0;
  for (guint i = 0; i < self->objects->len; i++) count += ((const saved_object *)self->objects->pdata[i])->owner != NULL;
  return count;
}

/* Without waiting. The list of windows goes before: a program that is killed in between would get an empty window. */
static void close_object(RestorationGtkApplication *application, saved_object *object) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  g_rc_box_acquire(object); /* a handler may end the application */
  object->owner = NULL;
  object->is_closed = true;
  if (!self->is_ending && self->root) push_now(application, self->root);
  if (self->handle && object->handle && !self->is_ending) unregister(application, object);
  else if (!object->is_registering) g_ptr_array_remove(self->objects, object);
  free_object(object);
}

/* A window that the user closes is not restored, unless the application ends with it. */
static void window_removed(GtkApplication *application, GtkWindow *window) {
  RestorationGtkApplicationPrivate *self = private_of(application);
  RestorationGtkApplication *mine = RESTORATION_GTK_APPLICATION(application);
  saved_object *object = self->handle && !self->is_ending ? object_of(mine, window) : NULL;
  if (object && count_windows(self) == 1) {
    push_all(mine, push_now);
    self->is_ending = count_windows(self) == 1; /* a handler may open another one */
  }
  /* A handler may have ended the application. */
  if (object && object_of(mine, window) == object) close_object(mine, object);
  GTK_APPLICATION_CLASS(restoration_gtk_application_parent_class)->window_removed(application, window);
}

static void set_property(GObject *object, guint property, const GValue *value, GParamSpec *spec) {
  RestorationGtkApplicationPrivate *self = private_of(object);
  char **text = property == PROP_APPLICATION ? &self->application
      : property == PROP_PROCESS             ? &self->process
                                             : &self->session_id;
  switch (property) {
    case PROP_AUTOSAVE_INTERVAL:
      set_interval(RESTORATION_GTK_APPLICATION(object), g_value_get_uint(value));
      break;
    case PROP_APPLICATION:
    case PROP_PROCESS:
    case PROP_SESSION_ID:
      g_free(*text);
      *text = g_value_dup_string(value);
      restoration_gtk_application_invalidate(RESTORATION_GTK_APPLICATION(object));
      break;
    default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
}

static void get_property(GObject *object, guint property, GValue *value, GParamSpec *spec) {
  RestorationGtkApplicationPrivate *self = private_of(object);
  switch (property) {
    case PROP_APPLICATION: g_value_set_string(value, self->application); break;
    case PROP_PROCESS: g_value_set_string(value, self->process); break;
    case PROP_AUTOSAVE_INTERVAL: g_value_set_uint(value, self->interval); break;
    case PROP_SESSION_ID: g_value_set_string(value, self->session_id); break;
    default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
}

static void finalize(GObject *object) {
  RestorationGtkApplicationPrivate *self = private_of(object);
  end_session(RESTORATION_GTK_APPLICATION(object));
  g_ptr_array_unref(self->objects);
  g_free(self->application);
  g_free(self->process);
  g_free(self->session_id);
  G_OBJECT_CLASS(restoration_gtk_application_parent_class)->finalize(object);
}

static void restoration_gtk_application_init(RestorationGtkApplication *application) {
  private_of(application)->objects = g_ptr_array_new_with_free_func(free_object);
  /* Connected before the program can connect its own; a subclass need not call the methods of this class. */
  g_signal_connect_swapped(application, "startup", G_CALLBACK(open_session), application);
  g_signal_connect_swapped(application, "shutdown", G_CALLBACK(end), application);
  g_signal_connect_swapped(application, "activate", G_CALLBACK(restore_once), application);
  g_signal_connect_swapped(application, "open", G_CALLBACK(restore_once), application);
}

static void restoration_gtk_application_class_init(RestorationGtkApplicationClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  GTK_APPLICATION_CLASS(class)->window_added = window_added;
  GTK_APPLICATION_CLASS(class)->window_removed = window_removed;

  /**
   * RestorationGtkApplication::save-state:
   * @application: the application
   * @dict: a dictionary of type a{sv}
   *
   * Emitted when the application is saved: the handler adds what is to be saved of this process to @dict.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  signals[SAVE_STATE] = g_signal_new(
      "save-state", RESTORATION_GTK_TYPE_APPLICATION, G_SIGNAL_RUN_LAST,
      G_STRUCT_OFFSET(RestorationGtkApplicationClass, save_state), g_signal_accumulator_true_handled, NULL, NULL,
      G_TYPE_BOOLEAN, 1, G_TYPE_VARIANT_DICT);

  /**
   * RestorationGtkApplication::restore-state:
   * @application: the application
   * @reason: why state is restored
   * @state: an a{sv} as a handler of #RestorationGtkApplication::save-state has made it
   *
   * Emitted before the application is activated for the first time, if something is saved.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  signals[RESTORE_STATE] = g_signal_new(
      "restore-state", RESTORATION_GTK_TYPE_APPLICATION, G_SIGNAL_RUN_LAST,
      G_STRUCT_OFFSET(RestorationGtkApplicationClass, restore_state), g_signal_accumulator_true_handled, NULL, NULL,
      G_TYPE_BOOLEAN, 2, RESTORATION_GTK_TYPE_RESTORE_REASON, G_TYPE_VARIANT);

  /**
   * RestorationGtkApplication::restore-window:
   * @application: the application
   * @reason: why state is restored
   * @state: an a{sv} as a handler of #RestorationGtkApplicationWindow::save-state has made it
   *
   * Emitted for each saved window, the most recently used first: the handler makes a #RestorationGtkApplicationWindow,
   * adds it to the application, applies the state and presents it.
   */
  signals[RESTORE_WINDOW] = g_signal_new(
      "restore-window", RESTORATION_GTK_TYPE_APPLICATION, G_SIGNAL_RUN_FIRST,
      G_STRUCT_OFFSET(RestorationGtkApplicationClass, restore_window), NULL, NULL, NULL, G_TYPE_NONE, 2,
      RESTORATION_GTK_TYPE_RESTORE_REASON, G_TYPE_VARIANT);

  /**
   * RestorationGtkApplication:restoration-application:
   *
   * The name of the application for the broker, which all its processes give. By default the application id.
   */
  props[PROP_APPLICATION] = g_param_spec_string(
      "restoration-application", NULL, NULL, NULL, G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkApplication:restoration-process:
   *
   * The role of this process in the application, and the identifier of the root object that its windows are below.
   */
  props[PROP_PROCESS] = g_param_spec_string(
      "restoration-process", NULL, NULL, "main", G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkApplication:autosave-interval:
   *
   * The number of seconds between automatic saves; 0 for none.
   */
  props[PROP_AUTOSAVE_INTERVAL] = g_param_spec_uint(
      "autosave-interval", NULL, NULL, 0, G_MAXUINT, 15,
      G_PARAM_READWRITE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkApplication:session-id:
   *
   * A place for what the compositor calls this session (xdg-session-management): saved with the application, and set
   * again before #RestorationGtkApplication::restore-state.
   */
  props[PROP_SESSION_ID] = g_param_spec_string(
      "session-id", NULL, NULL, NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties(object_class, PROPS, props);
}

/**
 * restoration_gtk_application_new:
 * @application_id: (nullable): the application id
 * @flags: the flags of the application
 *
 * Makes an application, as gtk_application_new().
 *
 * Returns: (transfer full): a new application
 */
RestorationGtkApplication *restoration_gtk_application_new(const char *application_id, GApplicationFlags flags) {
  return g_object_new(RESTORATION_GTK_TYPE_APPLICATION, "application-id", application_id, "flags", flags, NULL);
}

/* -- The window ------------------------------------------------------------------------------------------------- */

static void set_window_property(GObject *object, guint property, const GValue *value, GParamSpec *spec) {
  RestorationGtkApplicationWindowPrivate *self = window_private(object);
  if (property == PROP_IDENTIFIER) self->identifier = g_value_dup_string(value);
  else if (property == PROP_PARENT) self->parent = g_value_dup_boxed(value);
  else G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
}

static void get_window_property(GObject *object, guint property, GValue *value, GParamSpec *spec) {
  RestorationGtkApplicationWindowPrivate *self = window_private(object);
  if (property == PROP_IDENTIFIER) g_value_set_string(value, self->identifier);
  else if (property == PROP_PARENT) g_value_set_boxed(value, self->parent);
  else G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
}

static void finalize_window(GObject *object) {
  g_free(window_private(object)->identifier);
  g_strfreev(window_private(object)->parent);
  G_OBJECT_CLASS(restoration_gtk_application_window_parent_class)->finalize(object);
}

static void restoration_gtk_application_window_init(RestorationGtkApplicationWindow *window) { (void)window; }

static void restoration_gtk_application_window_class_init(RestorationGtkApplicationWindowClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  object_class->set_property = set_window_property;
  object_class->get_property = get_window_property;
  object_class->finalize = finalize_window;

  /**
   * RestorationGtkApplicationWindow::save-state:
   * @window: the window
   * @dict: a dictionary of type a{sv}
   *
   * Emitted when the window is saved: the handler adds what is to be saved of it to @dict. Its size, and whether it is
   * maximized, the library saves itself.
   *
   * Returns: %TRUE to stop further handlers from running
   */
  window_save_state = g_signal_new(
      "save-state", RESTORATION_GTK_TYPE_APPLICATION_WINDOW, G_SIGNAL_RUN_LAST,
      G_STRUCT_OFFSET(RestorationGtkApplicationWindowClass, save_state), g_signal_accumulator_true_handled, NULL, NULL,
      G_TYPE_BOOLEAN, 1, G_TYPE_VARIANT_DICT);

  /**
   * RestorationGtkApplicationWindow:restoration-identifier:
   *
   * The window's name below its parent. By default `Window-1` and so on. A restored window has that of the saved one.
   */
  window_props[PROP_IDENTIFIER] = g_param_spec_string(
      "restoration-identifier", NULL, NULL, NULL, G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * RestorationGtkApplicationWindow:restoration-parent:
   *
   * The path of the object that the window is below, which may be another process's. By default the process's root.
   */
  window_props[PROP_PARENT] = g_param_spec_boxed(
      "restoration-parent", NULL, NULL, G_TYPE_STRV,
      G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties(object_class, WINDOW_PROPS, window_props);
}

/**
 * restoration_gtk_application_window_new:
 * @application: an application
 *
 * Makes a window, as gtk_application_window_new().
 *
 * Returns: a new window
 */
GtkWidget *restoration_gtk_application_window_new(GtkApplication *application) {
  return g_object_new(RESTORATION_GTK_TYPE_APPLICATION_WINDOW, "application", application, NULL);
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
