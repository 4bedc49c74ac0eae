/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "restoration-glib.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { first_pause = 20000, last_pause = 1000000 }; /* microseconds */

typedef struct restoration_source {
  GSource base;
  restoration *handle;
  struct sockaddr_un address;
  restoration_resumed *resumed;
  void *data;
  int polled;     /* the descriptor that `tag` is of, or -1 */
  GIOCondition events;
  gpointer tag;
  int probe;      /* a connection on which a broker is awaited, or -1 */
  gint64 pause;   /* before the next probe */
} restoration_source;

static void watch(restoration_source *source, int descriptor, GIOCondition events) {
  /* Each change wakes the loop: made in every turn, it would never sleep. */
  if (descriptor == source->polled && events == source->events) return;
  if (source->tag) g_source_remove_unix_fd(&source->base, source->tag);
  source->tag = descriptor < 0 ? NULL : g_source_add_unix_fd(&source->base, descriptor, events);
  source->polled = descriptor;
  source->events = events;
}

static void end_probe(restoration_source *source) {
  watch(source, -1, 0);
  if (source->probe >= 0) close(source->probe);
  source->probe = -1;
}

static gboolean prepare(GSource *base, gint *timeout) {
  restoration_source *source = (restoration_source *)base;
  *timeout = -1;
  int descriptor = restoration_fd(source->handle);
  if (descriptor >= 0) {
    if (source->probe >= 0) end_probe(source); /* the program has resumed the session itself */
    watch(source, descriptor, (GIOCondition)restoration_events(source->handle));
  } else if (source->probe < 0) {
    watch(source, -1, 0);
    if (g_source_get_ready_time(base) < 0) g_source_set_ready_time(base, g_get_monotonic_time() + source->pause);
  }
  return FALSE;
}

static void try_again_later(restoration_source *source) {
  end_probe(source);
  source->pause = MIN(source->pause * 2, last_pause);
}

/* Neither connecting nor sending waits: the kernel refuses where it would have to. */
static void begin_probe(restoration_source *source) {
  static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
  source->probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (source->probe < 0 || connect(source->probe, (struct sockaddr *)&source->address, sizeof source->address) < 0 ||
      send(source->probe, ping, sizeof ping - 1, MSG_NOSIGNAL) < 0)
    try_again_later(source);
  else
    watch(source, source->probe, G_IO_IN | G_IO_HUP);
}

/* False if the session cannot go on. */
static bool end_loss(restoration_source *source) {
  char byte;
  if (recv(source->probe, &byte, 1, 0) <= 0) {
    try_again_later(source);
    return true;
  }
  end_probe(source);
  restoration_failure failure;
  int result = restoration_resume(source->handle, 0, &failure);
  if (result < 0) {
    try_again_later(source);
    return failure.code != RESTORATION_FENCED;
  }
  source->pause = first_pause;
  if (source->resumed) source->resumed(source->handle, result, source->data);
  return true;
}

static gboolean dispatch(GSource *base, GSourceFunc callback, gpointer data) {
  (void)callback;
  (void)data;
  restoration_source *source = (restoration_source *)base;
  g_source_set_ready_time(base, -1);
  if (restoration_fd(source->handle) >= 0) restoration_dispatch(source->handle); /* `prepare` sees a loss */
  else if (source->probe < 0) begin_probe(source);
  else if (g_source_query_unix_fd(base, source->tag) && !end_loss(source)) return G_SOURCE_REMOVE;
  return G_SOURCE_CONTINUE;
}

static void finalize(GSource *base) {
  restoration_source *source = (restoration_source *)base;
  if (source->probe >= 0) close(source->probe);
}

GSource *restoration_source_new(
    restoration *handle, const char *socket, restoration_resumed *resumed, void *data) {
  static GSourceFuncs functions = {.prepare = prepare, .dispatch = dispatch, .finalize = finalize};
  restoration_source *source = (restoration_source *)g_source_new(&functions, sizeof *source);
  source->handle = handle;
  source->resumed = resumed;
  source->data = data;
  source->polled = source->probe = -1;
  source->pause = first_pause;
  source->address.sun_family = AF_UNIX;
  if (socket) g_strlcpy(source->address.sun_path, socket, sizeof source->address.sun_path);
  else restoration_default_socket(source->address.sun_path, sizeof source->address.sun_path);
  g_source_set_name(&source->base, "restorationd");
  return &source->base;
}
