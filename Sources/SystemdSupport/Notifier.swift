// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc
internal import Synchronization

/// Reports our state to the service manager, in order, on a separate thread: a slow manager blocks nothing else.
///
/// Without a manager it does nothing. Messages that were not sent when the process ends are lost: see `barrier`.
package final class Notifier: Sendable {
  /// The most descriptors that wait, as many as the manager stores: a manager that does not read must not use up this
  /// process's descriptors.
  package static let waitingDescriptorsMax = 1_200

  private let outbox: Outbox<Entry>?
  /// Names whose descriptors were not accepted; the manager must not be told to close them.
  private let refused = Mutex<Set<String>>([])

  private struct Entry {
    let text: String
    /// A duplicate, closed once it is sent.
    var descriptor: Int32?
    /// Only the last of several that wait needs to be sent.
    var isRepeatable = false
    /// The name under which the manager stores the descriptor.
    var storedName: String?

    /// The message's variable.
    var subject: Substring { text.prefix { $0 != "=" } }
  }

  /// - Parameters:
  ///   - path: the value of `NOTIFY_SOCKET`; `nil` without a manager.
  ///   - whenFailing: called on the notifier's thread for each message that could not be delivered.
  package init(socket path: String?, whenFailing: @escaping @Sendable (String) -> Void = { _ in }) {
    guard let path else {
      outbox = nil
      return
    }
    // Other kinds of addresses are for virtual machines.
    guard path.hasPrefix("/") || path.hasPrefix("@") else {
      whenFailing("NOTIFY_SOCKET is \(path), which is not a Unix socket: the service manager gets no messages")
      outbox = nil
      return
    }
    let socket = NotifySocket(path: path)
    outbox = socket.flatMap { socket in
      Outbox(thread: "notifier") { entry in
        let result = socket.send(entry.text, entry.descriptor)
        if let descriptor = entry.descriptor { close(descriptor) }
        guard result < 0 else { return }
        let reason = String(cString: strerror(-result))
        whenFailing("the service manager was not told \(entry.subject): \(reason); see systemctl --user status")
      }
    }
    if outbox == nil { whenFailing("no descriptor or thread is left to notify the service manager") }
  }

  deinit {
    outbox?.close()
  }

  /// Whether there is a manager.
  package var isActive: Bool { outbox != nil }

  /// Sends the message after all earlier ones.
  ///
  /// A descriptor's name is used once: a descriptor that is removed before it was sent is never sent.
  ///
  /// - Returns: whether the message was queued. False without a manager, and for a descriptor that could not be
  ///   duplicated or waits behind too many others.
  @discardableResult
  package func send(_ message: NotifyMessage) -> Bool {
    guard let outbox else { return false }
    let entry = Entry(text: message.text, isRepeatable: message.isRepeatable)
    switch message {
    case .store(let name, let descriptor): return store(descriptor, name, entry, outbox)
    case .removeStored(let name): if takeBack(name, outbox) { return true }
    case .ready, .status, .stopping, .reloading, .extendTimeout, .watchdog, .errno: break
    }
    // A manager that does not read must not make the queue grow.
    let subject = entry.subject
    return outbox.append(entry, replacing: entry.isRepeatable ? { $0.isRepeatable && $0.subject == subject } : nil)
  }

  private func store(_ descriptor: Int32, _ name: String, _ entry: Entry, _ outbox: Outbox<Entry>) -> Bool {
    var entry = entry
    entry.storedName = name
    let number = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    if number >= 0 {
      entry.descriptor = number
      if outbox.append(entry, limit: Self.waitingDescriptorsMax, counting: { $0.storedName != nil }) { return true }
      close(number)
    }
    refused.withLock { _ = $0.insert(name) }
    return false
  }

  /// Whether the descriptor was taken out of the queue before the manager got it.
  private func takeBack(_ name: String, _ outbox: Outbox<Entry>) -> Bool {
    let entries = outbox.takeBack { $0.storedName == name }
    for descriptor in entries.compactMap(\.descriptor) { close(descriptor) }
    return refused.withLock { $0.remove(name) } != nil || !entries.isEmpty
  }

  /// Waits until the manager has read everything sent before; false if it did not in time.
  ///
  /// Blocks the calling thread, which must not be an event loop's.
  @discardableResult
  package func barrier(milliseconds: Int32 = 5_000) -> Bool {
    guard let outbox else { return true }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return false }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    outbox.append(Entry(text: "BARRIER=1", descriptor: ends[1]))
    // The last copy of the other end closes when the manager has read this message.
    let isOver = MonotonicTime.now.after(milliseconds: Int(milliseconds)).waitForHangUp(of: ends[0])
    close(ends[0])
    return isOver
  }
}

extension NotifyMessage {
  fileprivate var isRepeatable: Bool {
    switch self {
    case .status, .watchdog, .extendTimeout: true
    case .ready, .stopping, .reloading, .store, .removeStored, .errno: false
    }
  }
}

/// The manager's socket, and our sending socket.
private final class NotifySocket: Sendable {
  private let path: String
  private let descriptor: Int32

  /// `nil` if no descriptor is left.
  init?(path: String) {
    self.path = path
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Returns 0 or a negative error.
  func send(_ text: String, _ passed: Int32?) -> Int32 {
    var result: Int32
    repeat {
      result = text.withCString { csystemd_send(descriptor, path, $0, strlen($0), passed ?? -1) }
    } while result == -EINTR
    return result
  }
}

extension MonotonicTime {
  /// Waits until all copies of the other end of a pipe are closed; false if `moment` comes first.
  fileprivate func waitForHangUp(of descriptor: Int32) -> Bool {
    while true {
      var entry = pollfd(fd: descriptor, events: 0, revents: 0)
      let count = poll(&entry, 1, remainingMilliseconds)
      if count > 0 { return true }
      if remainingMicroseconds == 0 { return false }
    }
  }
}
