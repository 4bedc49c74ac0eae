/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session in the loop of Qt: qt SOCKET
 *
 * Saves a state, says so, and saves another one when the session has gone on with the next broker. Each call is made
 * while the loop runs and the source has nothing to read. Exits with 0 once the second state is saved.
 */
#include <QCoreApplication>
#include <cstdio>

#include "restoration-qt.hpp"

static restoration_object *note;
static int saves;

static void say(const char *what, int number) {
  std::printf("%s %d\n", what, number);
  std::fflush(stdout);
}

static void saved(restoration *, json_t *result, const restoration_failure *failure, void *) {
  say(result ? "saved" : failure->kind, saves);
  if (saves == 2) QCoreApplication::quit();
}

static void save(restoration *handle) {
  json_t *params = json_pack(
      "{s:I, s:{s:i}}", "object", restoration_object_handle(note), "state", "n", ++saves);
  restoration_send(handle, "encodeRestorableState", params, saved, nullptr, nullptr);
}

int main(int count, char **arguments) {
  QCoreApplication application(count, arguments);
  restoration_failure failure = {};
  restoration *handle = restoration_open(arguments[1], &failure);
  restoration_session options = {};
  options.application = "org.example.Qt";
  if (handle && restoration_begin(handle, &options, 5000, &failure) == 0)
    note = restoration_register(
        handle, json_pack("{s:s}", "restorationIdentifier", "Note"), nullptr, nullptr, 5000, &failure);
  if (!note) return std::fprintf(stderr, "%s. %s\n", failure.message, failure.hint), 1;
  {
    RestorationSource source(handle, arguments[1], [](restoration *session, int result) {
      say("resumed", result);
      QTimer::singleShot(1, [session] { save(session); });
    });
    QTimer::singleShot(1, [handle] { save(handle); });
    application.exec();
  }
  restoration_close(handle);
  return 0;
}
