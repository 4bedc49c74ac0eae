// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A connection to the user's service manager, over the user's bus or, if there is none, the manager's own socket.
///
/// Lives on one thread, which it blocks, at most until the deadline of each call.
final class ManagerConnection {
  static let service = "org.freedesktop.systemd1"
  static let managerPath = "/org/freedesktop/systemd1"
  static let managerInterface = "org.freedesktop.systemd1.Manager"

  private let bus: OpaquePointer
  /// The receiver of calls; `nil` if the manager itself is at the other end.
  private let destination: String?
  /// Answers may be missing or late: a new connection is needed.
  private(set) var isBroken = false
  /// Starting units, by the path of the manager's job; a second request for such a unit gets the same job.
  private var starts: [String: [UnitStart]] = [:]

  struct UnitStart {
    let unit: String
    let deadline: MonotonicTime
    let completion: @Sendable (Result<Void, UserManagerError>) -> Void
  }

  private init(bus: OpaquePointer, destination: String?) { (self.bus, self.destination) = (bus, destination) }

  deinit {
    // Flushing would wait 90 seconds for a bus that never introduces itself; every answer that matters has arrived.
    sd_bus_close_unref(bus)
  }

  /// Connects by the first way that works.
  static func open(_ deadline: MonotonicTime) throws(UserManagerError) -> ManagerConnection {
    if let fault = SystemdLibrary.fault { throw UserManagerError(.unavailable, fault) }
    // If the bus does not answer, half of the time is left for the socket.
    let half = MonotonicTime.now.after(milliseconds: Int(deadline.remainingMilliseconds) / 2)
    if let connection = userBus(half) { return connection }
    if let connection = ownSocket(deadline) { return connection }
    throw UserManagerError(
      .unavailable,
      "no systemd user manager can be reached, neither over the user's bus nor at $XDG_RUNTIME_DIR/systemd/private; "
        + "log in with one, or set XDG_RUNTIME_DIR and DBUS_SESSION_BUS_ADDRESS"
    )
  }

  private static func userBus(_ deadline: MonotonicTime) -> ManagerConnection? {
    var bus: OpaquePointer?
    guard sd_bus_open_user(&bus) >= 0, let bus else { return nil }
    let connection = ManagerConnection(bus: bus, destination: service)
    guard connection.becomesReady(deadline) else { return nil }
    // A bus without a manager would try to start one.
    let (name, path) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
    let reply = try? connection.call("NameHasOwner", [service], deadline, of: name, at: path, to: name)
    return reply?.readBool() == true ? connection : nil
  }

  private static func ownSocket(_ deadline: MonotonicTime) -> ManagerConnection? {
    guard let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), directory.hasPrefix("/") else {
      return nil
    }
    var created: OpaquePointer?
    guard sd_bus_new(&created) >= 0, let bus = created else { return nil }
    let connection = ManagerConnection(bus: bus, destination: nil)
    guard sd_bus_set_address(bus, "unix:path=\(escaped(directory))/systemd/private") >= 0, sd_bus_start(bus) >= 0,
      connection.becomesReady(deadline)
    else { return nil }
    return connection
  }

  /// Escaped for an address of D-Bus.
  private static func escaped(_ path: String) -> String {
    path.utf8.map { byte in
      let scalar = UnicodeScalar(byte)
      let isPlain = ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || ("0"..."9").contains(scalar)
      if isPlain || "-_/.*".unicodeScalars.contains(scalar) { return String(scalar) }
      return "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }.joined()
  }

  /// Has a time limit: libsystemd itself would wait 90 seconds for the other end to introduce itself.
  private func becomesReady(_ deadline: MonotonicTime) -> Bool {
    while sd_bus_is_ready(bus) == 0 {
      let processed = sd_bus_process(bus, nil)
      guard processed >= 0 else { return false }
      guard processed == 0 else { continue }
      let remaining = deadline.remainingMicroseconds
      guard remaining > 0, sd_bus_wait(bus, remaining) >= 0 else { return false }
    }
    return sd_bus_is_ready(bus) > 0
  }

  // MARK: Calls

  /// Calls a method whose parameters are strings; of the manager unless another destination is given.
  func call(
    _ member: String,
    _ parameters: [String],
    _ deadline: MonotonicTime,
    of interface: String = managerInterface,
    at path: String = managerPath,
    to other: String? = nil
  ) throws(UserManagerError) -> BusMessage {
    let destination = other ?? destination
    var created: OpaquePointer?
    let result = sd_bus_message_new_method_call(bus, &created, destination, path, interface, member)
    guard result >= 0, let created else { throw failure(member, result) }
    let request = BusMessage(owning: created)
    for parameter in parameters {
      let result = sd_bus_message_append_basic(created, CChar(UInt8(ascii: "s")), parameter)
      guard result >= 0 else { throw failure(member, result) }
    }
    let remaining = deadline.remainingMicroseconds
    guard remaining > 0 else { throw failure(member, -ETIMEDOUT) }
    var error = sd_bus_error()
    var reply: OpaquePointer?
    let outcome = sd_bus_call(bus, created, remaining, &error, &reply)
    _ = consume request
    defer { sd_bus_error_free(&error) }
    if outcome >= 0, let reply { return BusMessage(owning: reply) }
    throw failure(member, outcome, error)
  }

  private func failure(_ member: String, _ result: Int32, _ error: sd_bus_error = sd_bus_error()) -> UserManagerError {
    if let name = error.name, result != -ETIMEDOUT, result != -ENOTCONN, result != -ECONNRESET {
      let text = error.message.map { String(cString: $0) } ?? String(cString: name)
      return UserManagerError(.refused, "the user manager refuses \(member): \(text)")
    }
    isBroken = true
    if result == -ETIMEDOUT {
      return UserManagerError(.timedOut, "the user manager does not answer \(member); see systemctl --user status")
    }
    let reason = String(cString: strerror(-result))
    return UserManagerError(.unavailable, "the connection to the user manager failed at \(member): \(reason)")
  }

  // MARK: Units that start

  var isStarting: Bool { !starts.isEmpty }

  /// Starts the unit; `completion` runs when the manager's job has ended.
  func start(_ start: UnitStart, callDeadline: MonotonicTime) {
    do throws(UserManagerError) {
      try awaitJobs()
      let reply = try call("StartUnit", [start.unit, "replace"], callDeadline)
      guard let job = reply.readString("o") else {
        throw UserManagerError(.unavailable, "the user manager's answer to StartUnit names no job")
      }
      starts[job, default: []].append(start)
    } catch {
      start.completion(.failure(error))
    }
  }

  /// Subscribes to the signal for ended jobs; once, before the first start.
  private func awaitJobs() throws(UserManagerError) {
    guard starts.isEmpty else { return }
    let rule =
      "type='signal',path='\(Self.managerPath)',interface='\(Self.managerInterface)',member='JobRemoved'"
      + (destination.map { ",sender='\($0)'" } ?? "")
    let result = sd_bus_add_match(bus, nil, rule, nil, nil)
    guard result >= 0 else { throw failure("AddMatch", result) }
  }

  /// Handles arrived messages, and fails requests that have taken too long.
  func dispatch() {
    var processed: Int32 = 1
    while processed > 0 {
      var message: OpaquePointer?
      processed = sd_bus_process(bus, &message)
      if let message { handle(BusMessage(owning: message)) }
    }
    if processed < 0 { return fail(failure("JobRemoved", processed)) }
    let now = MonotonicTime.now
    for (job, waiting) in starts {
      let others = waiting.filter { $0.deadline > now }
      starts[job] = others.isEmpty ? nil : others
      for start in waiting where start.deadline <= now {
        start.completion(
          .failure(
            UserManagerError(.timedOut, "\(start.unit) starts too slowly; see systemctl --user status \(start.unit)")
          )
        )
      }
    }
  }

  /// Sleeps until a message arrives, the other descriptor is readable, or a start has taken too long.
  func wait(or descriptor: Int32) {
    var entries = [
      pollfd(fd: sd_bus_get_fd(bus), events: Int16(clamping: max(0, sd_bus_get_events(bus))), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    poll(&entries, 2, starts.values.joined().map(\.deadline).min()?.remainingMilliseconds ?? 0)
  }

  /// No more reports will come about the starting units.
  func fail(_ error: UserManagerError) {
    isBroken = true
    for start in starts.values.joined() { start.completion(.failure(error)) }
    starts = [:]
  }

  private func handle(_ message: consuming BusMessage) {
    guard message.isSignal(Self.managerInterface, "JobRemoved"), message.readUnsigned() != nil,
      let job = message.readString("o"), message.readString() != nil, let result = message.readString(),
      let waiting = starts.removeValue(forKey: job)
    else { return }
    for start in waiting {
      guard result != "done" else {
        start.completion(.success(()))
        continue
      }
      start.completion(
        .failure(
          UserManagerError(.failed, "its start job ended with \(result); see systemctl --user status \(start.unit)")
        )
      )
    }
  }
}
