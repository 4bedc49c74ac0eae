/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle of restoration.h in the event loop of Qt 6. The source dispatches the handle, and connects again when the
 * broker was lost, without blocking the loop: it waits until a broker answers, and resumes the session only then. A
 * broker that answers and freezes before the session is resumed holds the loop up for a second at a time.
 */
#ifndef RESTORATION_QT_HPP
#define RESTORATION_QT_HPP

#include <QAbstractEventDispatcher>
#include <QSocketNotifier>
#include <QTimer>
#include <cstring>
#include <functional>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "restoration.h"

/* Belongs to the thread that has made it, after its QCoreApplication. Delete it before the handle is closed. */
class RestorationSource : public QObject {
 public:
  /* A session goes on after a loss: the result of restoration_resume, 1, or 0 if the session is a new one. */
  using Resumed = std::function<void(restoration *handle, int result)>;

  /* `socket` is that of restoration_open. */
  explicit RestorationSource(
      restoration *session, const char *socket = nullptr, Resumed told = {}, QObject *parent = nullptr)
      : QObject(parent), handle(session), resumed(std::move(told)) {
    address.sun_family = AF_UNIX;
    if (socket) std::strncpy(address.sun_path, socket, sizeof address.sun_path - 1);
    else restoration_default_socket(address.sun_path, sizeof address.sun_path);
    timer.setSingleShot(true);
    connect(&timer, &QTimer::timeout, this, [this] { beginProbe(); });
    connect(QAbstractEventDispatcher::instance(), &QAbstractEventDispatcher::aboutToBlock, this, [this] { watch(); });
  }

  ~RestorationSource() override { endProbe(); }

 private:
  enum { firstPause = 20, lastPause = 1000 }; /* milliseconds */

  /* A notifier may be calling. */
  struct End {
    void operator()(QSocketNotifier *notifier) const {
      notifier->setEnabled(false);
      notifier->deleteLater();
    }
  };
  using Notifier = std::unique_ptr<QSocketNotifier, End>;

  restoration *handle;
  Resumed resumed;
  sockaddr_un address = {};
  QTimer timer;
  int pause = firstPause;
  bool isOver = false;
  int probe = -1;   /* a connection on which a broker is awaited */
  int watched = -1; /* the descriptor that the notifiers are of */
  Notifier reader, writer;

  /* Whenever the loop is about to wait: the program may have sent something, or resumed the session itself. */
  void watch() {
    int descriptor = restoration_fd(handle);
    if (descriptor >= 0) endProbe();
    else if (probe < 0 && !timer.isActive() && !isOver) timer.start(pause);
    int wanted = descriptor >= 0 ? descriptor : probe;
    if (wanted != watched) {
      watched = wanted;
      reader = makeNotifier(QSocketNotifier::Read);
      writer = makeNotifier(QSocketNotifier::Write);
    }
    if (writer) writer->setEnabled(descriptor >= 0 && restoration_events(handle) & POLLOUT);
  }

  Notifier makeNotifier(QSocketNotifier::Type type) {
    if (watched < 0) return nullptr;
    Notifier made(new QSocketNotifier(watched, type));
    connect(made.get(), &QSocketNotifier::activated, this, [this] {
      if (restoration_fd(handle) >= 0) restoration_dispatch(handle); /* `watch` sees a loss */
      else if (probe >= 0) endLoss();
    });
    return made;
  }

  /* Neither connecting nor sending waits: the kernel refuses where it would have to. */
  void beginProbe() {
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0 || ::connect(probe, reinterpret_cast<sockaddr *>(&address), sizeof address) < 0 ||
        ::send(probe, ping, sizeof ping - 1, MSG_NOSIGNAL) < 0)
      tryAgainLater();
  }

  void endLoss() {
    char byte;
    restoration_failure failure;
    int result = -1;
    if (::recv(probe, &byte, 1, 0) > 0) {
      endProbe();
      result = restoration_resume(handle, 0, &failure);
      isOver = result < 0 && failure.code == RESTORATION_FENCED;
    }
    if (result < 0) return tryAgainLater();
    pause = firstPause;
    if (resumed) resumed(handle, result);
  }

  void tryAgainLater() {
    endProbe();
    pause = qMin(2 * pause, int(lastPause));
  }

  void endProbe() {
    if (probe < 0) return;
    if (watched == probe) {
      reader.reset();
      writer.reset();
      watched = -1;
    }
    ::close(probe);
    probe = -1;
  }
};

#endif
