// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc
internal import Synchronization

/// Tells the service manager of our state, in order, on a thread of its own: a slow manager holds up nobody.
///
/// Without a manager it does nothing. Messages that were not sent when the process ends are lost: see `barrier`.
package final class Notifier: Sendable {
  private let queue: NotifyQueue?

  /// - Parameters:
  ///   - socket: the value of `NOTIFY_SOCKET`; nil where nobody wants to be told.
  ///   - whenFailing: called on the notifier's thread for each message that could not be delivered.
  package init(socket path: String?, whenFailing: @escaping @Sendable (String) -> Void = { _ in }) {
    queue = path.flatMap { NotifyQueue(path: $0, whenFailing: whenFailing) }
  }

  deinit {
    queue?.end()
  }

  /// Whether there is a manager to tell anything.
  package var isActive: Bool { queue != nil }

  /// Has the message sent after all earlier ones.
  ///
  /// - Returns: whether it is on its way: false without a manager, and for a descriptor that could not be duplicated.
  @discardableResult
  package func send(_ message: NotifyMessage) -> Bool {
    guard let queue else { return false }
    var duplicate: Int32?
    if case .store(_, let descriptor) = message {
      let number = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      guard number >= 0 else { return false }
      duplicate = number
    }
    queue.append(NotifyQueue.Entry(message.text, duplicate, isRepeatable: message.isRepeatable))
    return true
  }

  /// Waits until the manager has taken in everything that was sent before; false when it did not in time.
  ///
  /// Blocks the calling thread, which must not be an event loop's.
  @discardableResult
  package func barrier(milliseconds: Int32 = 5_000) -> Bool {
    guard let queue else { return true }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return false }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    queue.append(NotifyQueue.Entry("BARRIER=1", ends[1], isRepeatable: false))
    // The other end is closed for good when the manager has come to this message.
    var entry = pollfd(fd: ends[0], events: 0, revents: 0)
    var count: Int32
    repeat { count = poll(&entry, 1, milliseconds) } while count < 0 && errno == EINTR
    close(ends[0])
    return count > 0
  }
}

extension NotifyMessage {
  /// Only the last of several that wait needs to be sent.
  fileprivate var isRepeatable: Bool {
    switch self {
    case .status, .watchdog, .extendTimeout: true
    default: false
    }
  }
}

/// Messages on their way, and the thread that sends them. The thread ends, after the last message, when the notifier
/// goes.
private final class NotifyQueue: Sendable {
  struct Entry {
    let text: String
    /// Ours; closed once it is sent.
    let descriptor: Int32?
    let isRepeatable: Bool

    init(_ text: String, _ descriptor: Int32?, isRepeatable: Bool) {
      self.text = text
      self.descriptor = descriptor
      self.isRepeatable = isRepeatable
    }

    /// The name of what is told.
    var subject: Substring { text.prefix { $0 != "=" } }
  }

  private struct State {
    var entries: [Entry] = []
    var hasEnded = false
  }

  private let path: String
  private let socket: Int32
  private let wakeUp: WakeUp
  private let state = Mutex(State())
  private let whenFailing: @Sendable (String) -> Void

  /// Nil when it cannot work at all, of which `whenFailing` is told.
  init?(path: String, whenFailing: @escaping @Sendable (String) -> Void) {
    // Other kinds of addresses are for virtual machines.
    guard path.hasPrefix("/") || path.hasPrefix("@") else {
      whenFailing("NOTIFY_SOCKET is \(path), which is no Unix socket; nothing is told to the service manager")
      return nil
    }
    let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let socket = Glibc.socket(AF_UNIX, type, 0)
    guard socket >= 0, let wakeUp = WakeUp() else {
      whenFailing("nothing can be told to the service manager: \(String(cString: strerror(errno)))")
      if socket >= 0 { close(socket) }
      return nil
    }
    self.path = path
    self.socket = socket
    self.wakeUp = wakeUp
    self.whenFailing = whenFailing
    guard BackgroundThread.start("notifier", { self.run() }) else {
      whenFailing("nothing can be told to the service manager: there is no thread left")
      return nil
    }
  }

  deinit {
    close(socket)
  }

  func append(_ entry: Entry) {
    state.withLock { state in
      // A manager that does not read must not make us grow.
      if entry.isRepeatable { state.entries.removeAll { $0.isRepeatable && $0.subject == entry.subject } }
      state.entries.append(entry)
    }
    wakeUp.signal()
  }

  func end() {
    state.withLock { $0.hasEnded = true }
    wakeUp.signal()
  }

  private func run() {
    while true {
      let (entry, hasEnded) = state.withLock { state in
        (state.entries.isEmpty ? nil : state.entries.removeFirst(), state.hasEnded)
      }
      if let entry {
        send(entry)
      } else if hasEnded {
        return
      } else {
        wakeUp.wait()
      }
    }
  }

  private func send(_ entry: Entry) {
    var result: Int32
    repeat {
      result = entry.text.withCString { csystemd_send(socket, path, $0, strlen($0), entry.descriptor ?? -1) }
    } while result == -EINTR
    if let descriptor = entry.descriptor { close(descriptor) }
    guard result < 0 else { return }
    whenFailing("the service manager was not told \(entry.subject): \(String(cString: strerror(-result)))")
  }
}
