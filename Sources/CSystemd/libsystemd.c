// SPDX-License-Identifier: Apache-2.0
//
// The functions of libsystemd that are used here, under their own names. The library is opened when the first of them is
// called: a process without a manager never loads it, nor the libraries that it needs itself. If it cannot be opened, or
// is too old to have a function, the call fails with ELIBACC.

#define SD_JOURNAL_SUPPRESS_LOCATION
#include "CSystemd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *library;
static char fault[256];

static void open_library(void) {
  library = dlopen("libsystemd.so.0", RTLD_NOW);
  if (!library) snprintf(fault, sizeof fault, "%s", dlerror());
}

const char *csystemd_open(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_library);
  return library ? NULL : fault;
}

static void *find(const char *name) {
  return csystemd_open() ? NULL : dlsym(library, name);
}

// Hidden: libsystemd calls itself by these names as well, and must not arrive here.
#define FORWARD(type, otherwise, name, parameters, arguments) \
  __attribute__((visibility("hidden"))) type name parameters { \
    __typeof__(&name) function = find(#name); \
    return function ? function arguments : otherwise; \
  }
#define FORWARD_INT(name, parameters, arguments) FORWARD(int, -ELIBACC, name, parameters, arguments)

typedef sd_bus_message message;
typedef sd_bus_message_handler_t handler;

FORWARD_INT(sd_listen_fds_with_names, (int unset, char ***names), (unset, names))
FORWARD_INT(sd_watchdog_enabled, (int unset, uint64_t *usec), (unset, usec))
FORWARD_INT(sd_journal_sendv, (const struct iovec *fields, int count), (fields, count))
FORWARD_INT(sd_pid_get_user_unit, (pid_t pid, char **unit), (pid, unit))

FORWARD_INT(sd_bus_new, (sd_bus **bus), (bus))
FORWARD_INT(sd_bus_open_user, (sd_bus **bus), (bus))
FORWARD_INT(sd_bus_set_address, (sd_bus *bus, const char *address), (bus, address))
FORWARD_INT(sd_bus_start, (sd_bus *bus), (bus))
FORWARD_INT(sd_bus_is_ready, (sd_bus *bus), (bus))
FORWARD_INT(sd_bus_get_fd, (sd_bus *bus), (bus))
FORWARD_INT(sd_bus_get_events, (sd_bus *bus), (bus))
FORWARD_INT(sd_bus_process, (sd_bus *bus, message **received), (bus, received))
FORWARD_INT(sd_bus_wait, (sd_bus *bus, uint64_t usec), (bus, usec))
FORWARD_INT(sd_bus_call, (sd_bus *bus, message *call, uint64_t usec, sd_bus_error *error, message **reply),
            (bus, call, usec, error, reply))
FORWARD_INT(sd_bus_add_match, (sd_bus *bus, sd_bus_slot **slot, const char *rule, handler call, void *data),
            (bus, slot, rule, call, data))
FORWARD(sd_bus *, NULL, sd_bus_close_unref, (sd_bus *bus), (bus))
FORWARD(void, (void)0, sd_bus_error_free, (sd_bus_error *error), (error))

FORWARD_INT(sd_bus_message_new_method_call,
            (sd_bus *bus, message **made, const char *to, const char *path, const char *interface, const char *member),
            (bus, made, to, path, interface, member))
FORWARD_INT(sd_bus_message_append_basic, (message *to, char type, const void *value), (to, type, value))
FORWARD_INT(sd_bus_message_is_signal, (message *of, const char *interface, const char *name), (of, interface, name))
FORWARD_INT(sd_bus_message_peek_type, (message *of, char *type, const char **contents), (of, type, contents))
FORWARD_INT(sd_bus_message_enter_container, (message *of, char type, const char *contents), (of, type, contents))
FORWARD_INT(sd_bus_message_exit_container, (message *of), (of))
FORWARD_INT(sd_bus_message_read_basic, (message *of, char type, void *value), (of, type, value))
FORWARD_INT(sd_bus_message_read_strv, (message *of, char ***list), (of, list))
FORWARD_INT(sd_bus_message_skip, (message *of, const char *types), (of, types))
FORWARD(message *, NULL, sd_bus_message_unref, (message *of), (of))
