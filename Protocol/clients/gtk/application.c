/* SPDX-License-Identifier: Apache-2.0 */
/* The classes that stand in the places of GTK's: an application with a session, and windows that are added to it. */
#include "restoration-gtk.h"

typedef struct RestorationGtkApplicationPrivate {
  RestorationGtkSession *session; /* the application owns it */
} RestorationGtkApplicationPrivate;

typedef struct RestorationGtkApplicationWindowPrivate {
  char *identifier; /* as given when the window was made */
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

static RestorationGtkSession *session_of(gpointer application) {
  RestorationGtkApplicationPrivate *self = restoration_gtk_application_get_instance_private(application);
  return self->session;
}

static RestorationGtkApplicationWindowPrivate *window_private(gpointer window) {
  return restoration_gtk_application_window_get_instance_private(window);
}

/* -- The application -------------------------------------------------------------------------------------------- */

/**
 * restoration_gtk_application_invalidate:
 * @application: an application
 *
 * Says that something has changed: what differs from what was saved last is saved as soon as the main loop is idle.
 */
void restoration_gtk_application_invalidate(RestorationGtkApplication *application) {
  g_return_if_fail(RESTORATION_GTK_IS_APPLICATION(application));
  restoration_gtk_session_invalidate(session_of(application));
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
  restoration_gtk_session_save(session_of(application));
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
  restoration_gtk_session_forget(session_of(application));
}

static gboolean save_state(RestorationGtkApplication *application, GVariantDict *dict) {
  gboolean handled;
  g_signal_emit(application, signals[SAVE_STATE], 0, dict, &handled);
  return handled;
}

static gboolean restore_state(
    RestorationGtkApplication *application, RestorationGtkRestoreReason reason, GVariant *state) {
  gboolean handled;
  g_signal_emit(application, signals[RESTORE_STATE], 0, reason, state, &handled);
  return handled;
}

static void restore_window(
    RestorationGtkApplication *application, RestorationGtkRestoreReason reason, GVariant *state) {
  g_signal_emit(application, signals[RESTORE_WINDOW], 0, reason, state);
}

static gboolean save_window(RestorationGtkApplication *application, GtkWindow *window, GVariantDict *dict) {
  (void)application;
  gboolean handled = FALSE;
  if (RESTORATION_GTK_IS_APPLICATION_WINDOW(window)) g_signal_emit(window, window_save_state, 0, dict, &handled);
  return handled;
}

static void window_added(RestorationGtkApplication *application, GtkWindow *window) {
  if (!RESTORATION_GTK_IS_APPLICATION_WINDOW(window)) return;
  const RestorationGtkApplicationWindowPrivate *self = window_private(window);
  restoration_gtk_session_add_window(
      session_of(application), window, self->identifier, (const char *const *)self->parent);
}

static void session_identified(RestorationGtkApplication *application) {
  g_object_notify_by_pspec(G_OBJECT(application), props[PROP_SESSION_ID]);
}

/* The session has properties of the same names. */
static void set_property(GObject *object, guint property, const GValue *value, GParamSpec *spec) {
  (void)property;
  g_object_set_property(G_OBJECT(session_of(object)), spec->name, value);
}

static void get_property(GObject *object, guint property, GValue *value, GParamSpec *spec) {
  (void)property;
  g_object_get_property(G_OBJECT(session_of(object)), spec->name, value);
}

static void restoration_gtk_application_init(RestorationGtkApplication *application) {
  RestorationGtkApplicationPrivate *self = restoration_gtk_application_get_instance_private(application);
  /* Before the program can connect handlers of its own; a subclass need not call the methods of this class. */
  self->session = restoration_gtk_session_new(GTK_APPLICATION(application));
  g_object_unref(self->session);
  g_signal_connect(application, "window-added", G_CALLBACK(window_added), NULL);
  const struct {
    const char *signal;
    GCallback handler;
  } handlers[] = {
      {"save-state", G_CALLBACK(save_state)},         {"restore-state", G_CALLBACK(restore_state)},
      {"restore-window", G_CALLBACK(restore_window)}, {"save-window", G_CALLBACK(save_window)},
      {"notify::session-id", G_CALLBACK(session_identified)}};
  for (size_t i = 0; i < G_N_ELEMENTS(handlers); i++)
    g_signal_connect_object(self->session, handlers[i].signal, handlers[i].handler, application, G_CONNECT_SWAPPED);
}

static void restoration_gtk_application_class_init(RestorationGtkApplicationClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  object_class->set_property = set_property;
  object_class->get_property = get_property;

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

/* A window that is saved has the names under which that is done. */
static void get_window_property(GObject *object, guint property, GValue *value, GParamSpec *spec) {
  const RestorationGtkApplicationWindowPrivate *self = window_private(object);
  GtkApplication *application = gtk_window_get_application(GTK_WINDOW(object));
  char **path = RESTORATION_GTK_IS_APPLICATION(application)
      ? restoration_gtk_session_path_of(session_of(application), GTK_WINDOW(object))
      : NULL;
  guint last = path ? g_strv_length(path) - 1 : 0;
  if (property == PROP_IDENTIFIER) {
    g_value_set_string(value, path ? path[last] : self->identifier);
  } else if (property == PROP_PARENT) {
    if (path) g_clear_pointer(&path[last], g_free);
    g_value_set_boxed(value, path ? path : self->parent);
  } else {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
  }
  g_strfreev(path);
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
