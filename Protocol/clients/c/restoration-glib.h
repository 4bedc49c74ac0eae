/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle of restoration.h in the main loop of GLib. The source dispatches the handle, and connects again when the
 * broker was lost, without blocking the loop: it waits until a broker answers, and resumes the session only then. A
 * broker that answers and freezes before the session is resumed holds the loop up for a second at a time.
 */
#ifndef RESTORATION_GLIB_H
#define RESTORATION_GLIB_H

#include <glib.h>

#include "restoration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A session goes on after a loss. `result` is that of restoration_resume: 1, or 0 if the session is a new one. */
typedef void restoration_resumed(restoration *handle, int result, void *data);

/* A source, to be attached to a context. `socket` is that of restoration_open; `resumed` may be NULL. Destroy the source
 * before the handle is closed. */
GSource *restoration_source_new(
    restoration *handle, const char *socket, restoration_resumed *resumed, void *data);

#ifdef __cplusplus
}
#endif

#endif
