/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State restoration for GTK applications, with the signals and methods of the session saving of GTK 4.24 (unstable in
 * 4.22), over restorationd.
 *
 * RestorationGtkApplication and RestorationGtkApplicationWindow stand in the places of GtkApplication and
 * GtkApplicationWindow. RestorationGtkSession does the same for any GtkApplication and GtkWindow, such as those of
 * libadwaita. Once the application is activated, a broker that is gone or frozen does not block the main loop.
 */
#ifndef RESTORATION_GTK_H
#define RESTORATION_GTK_H

#include <gtk/gtk.h>

G_BEGIN_DECLS

/**
 * RestorationGtkRestoreReason:
 * @RESTORATION_GTK_RESTORE_REASON_PRISTINE: Nothing is saved
 * @RESTORATION_GTK_RESTORE_REASON_LAUNCH: The user starts the application, which ended well
 * @RESTORATION_GTK_RESTORE_REASON_RECOVER: The application has crashed before
 * @RESTORATION_GTK_RESTORE_REASON_RESTORE: The session is restored
 *
 * Why state is restored, as `GtkRestoreReason`.
 */
typedef enum {
  RESTORATION_GTK_RESTORE_REASON_PRISTINE,
  RESTORATION_GTK_RESTORE_REASON_LAUNCH,
  RESTORATION_GTK_RESTORE_REASON_RECOVER,
  RESTORATION_GTK_RESTORE_REASON_RESTORE,
} RestorationGtkRestoreReason;

#define RESTORATION_GTK_TYPE_RESTORE_REASON (restoration_gtk_restore_reason_get_type())
GType restoration_gtk_restore_reason_get_type(void);

#define RESTORATION_GTK_TYPE_SESSION (restoration_gtk_session_get_type())
G_DECLARE_FINAL_TYPE(RestorationGtkSession, restoration_gtk_session, RESTORATION_GTK, SESSION, GObject)

RestorationGtkSession *restoration_gtk_session_new(GtkApplication *application);
void restoration_gtk_session_add_window(
    RestorationGtkSession *self, GtkWindow *window, const char *identifier, const char *const *parent);
char **restoration_gtk_session_path_of(RestorationGtkSession *self, GtkWindow *window);
void restoration_gtk_session_save(RestorationGtkSession *self);
void restoration_gtk_session_forget(RestorationGtkSession *self);
void restoration_gtk_session_invalidate(RestorationGtkSession *self);

#define RESTORATION_GTK_TYPE_APPLICATION_WINDOW (restoration_gtk_application_window_get_type())
G_DECLARE_DERIVABLE_TYPE(
    RestorationGtkApplicationWindow, restoration_gtk_application_window, RESTORATION_GTK, APPLICATION_WINDOW,
    GtkApplicationWindow)

/**
 * RestorationGtkApplicationWindowClass:
 * @parent_class: The parent class
 * @save_state: Class closure of #RestorationGtkApplicationWindow::save-state
 */
struct _RestorationGtkApplicationWindowClass {
  GtkApplicationWindowClass parent_class;
  gboolean (*save_state)(RestorationGtkApplicationWindow *window, GVariantDict *dict);
};

#define RESTORATION_GTK_TYPE_APPLICATION (restoration_gtk_application_get_type())
G_DECLARE_DERIVABLE_TYPE(
    RestorationGtkApplication, restoration_gtk_application, RESTORATION_GTK, APPLICATION, GtkApplication)

/**
 * RestorationGtkApplicationClass:
 * @parent_class: The parent class
 * @save_state: Class closure of #RestorationGtkApplication::save-state
 * @restore_state: Class closure of #RestorationGtkApplication::restore-state
 * @restore_window: Class closure of #RestorationGtkApplication::restore-window
 */
struct _RestorationGtkApplicationClass {
  GtkApplicationClass parent_class;
  gboolean (*save_state)(RestorationGtkApplication *application, GVariantDict *state);
  gboolean (*restore_state)(
      RestorationGtkApplication *application, RestorationGtkRestoreReason reason, GVariant *state);
  void (*restore_window)(RestorationGtkApplication *application, RestorationGtkRestoreReason reason, GVariant *state);
};

RestorationGtkApplication *restoration_gtk_application_new(const char *application_id, GApplicationFlags flags);
void restoration_gtk_application_save(RestorationGtkApplication *application);
void restoration_gtk_application_forget(RestorationGtkApplication *application);
void restoration_gtk_application_invalidate(RestorationGtkApplication *application);

GtkWidget *restoration_gtk_application_window_new(GtkApplication *application);

char *restoration_gtk_state_to_json(GVariant *state);
GVariant *restoration_gtk_state_from_json(const char *json, GError **error);

G_END_DECLS

#endif
