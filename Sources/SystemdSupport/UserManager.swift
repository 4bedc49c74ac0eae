// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The systemd manager of this user's services.
///
/// All calls run on one thread, started on demand, over a connection that is open only while there are requests. Each
/// call ends within a time limit and never blocks its caller.
package final class UserManager: Sendable {
  private let queue: ManagerQueue
  private let callMilliseconds: Int
  private let startMilliseconds: Int

  /// - Parameters:
  ///   - callMilliseconds: the longest time of a call.
  ///   - startMilliseconds: the longest start of a unit.
  package init(callMilliseconds: Int = 5_000, startMilliseconds: Int = 120_000) {
    (self.callMilliseconds, self.startMilliseconds) = (callMilliseconds, startMilliseconds)
    queue = ManagerQueue()
  }

  deinit {
    queue.end()
  }

  /// The unit's file and its drop-ins, in the order in which they apply; `nil` if the unit does not exist.
  nonisolated(nonsending) package func unitFiles(of unit: String) async throws(UserManagerError) -> [String]? {
    try await perform { (connection, deadline) throws(UserManagerError) -> [String]? in
      guard let path = try Self.load(unit, connection, deadline) else { return nil }
      let names: Set<String> = ["LoadState", "FragmentPath", "DropInPaths"]
      let properties = try Self.properties(names, of: path, "Unit", connection, deadline)
      guard properties["LoadState"] != .string("not-found") else { return nil }
      var paths: [String] = []
      if case .string(let path) = properties["FragmentPath"], !path.isEmpty { paths.append(path) }
      if case .strings(let more) = properties["DropInPaths"] { paths += more }
      var texts: [String] = []
      for path in paths { if let text = try UnitText.read(path) { texts.append(text) } }
      return texts
    }
  }

  /// Starts the unit; returns when its start job has ended.
  nonisolated(nonsending) package func startUnit(_ unit: String) async throws(UserManagerError) {
    let callDeadline = MonotonicTime.now.after(milliseconds: callMilliseconds)
    let deadline = MonotonicTime.now.after(milliseconds: startMilliseconds)
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<Void, UserManagerError>, Never>) in
      let start = ManagerConnection.UnitStart(unit: unit, deadline: deadline) { continuation.resume(returning: $0) }
      queue.append(
        ManagerQueue.Request(
          deadline: callDeadline,
          run: { $0.start(start, callDeadline: callDeadline) },
          fail: { start.completion(.failure($0)) }
        )
      )
    }
    try result.get()
  }

  /// The result of a unit; one that is not loaded counts as one that never ran.
  nonisolated(nonsending) package func result(ofUnit unit: String) async throws(UserManagerError) -> UnitResult {
    try await perform { (connection, deadline) throws(UserManagerError) -> UnitResult in
      guard let path = try Self.load(unit, connection, deadline) else {
        throw UserManagerError(.refused, "the user manager does not know the unit \(unit)")
      }
      let kind = unit.split(separator: ".").last.map { $0.prefix(1).uppercased() + $0.dropFirst() } ?? "Service"
      let own: Set<String> = [
        "Result", "MainPID", "ExecMainPID", "ExecMainCode", "ExecMainStatus", Self.startTime, Self.exitTime,
      ]
      let states: Set<String> = ["ActiveState", "SubState", Self.leaveTime]
      let state = try Self.properties(states, of: path, "Unit", connection, deadline)
      let properties = try Self.properties(own, of: path, kind, connection, deadline)
      func text(_ value: BusMessage.Value?) -> String { if case .string(let text) = value { text } else { "" } }
      func number(_ name: String) -> Int32 { if case .integer(let number) = properties[name] { number } else { 0 } }
      func process(_ name: String) -> Int32? { number(name) > 0 ? number(name) : nil }
      func time(_ value: BusMessage.Value?) -> UInt64 { if case .microseconds(let time) = value { time } else { 0 } }
      var unitResult = UnitResult(
        activeState: text(state["ActiveState"]),
        subState: text(state["SubState"]),
        result: text(properties["Result"]),
        mainProcess: process("MainPID"),
        lastProcess: process("ExecMainPID"),
        lastCode: number("ExecMainCode"),
        lastStatus: number("ExecMainStatus")
      )
      unitResult.judge(
        isService: kind == "Service",
        left: time(state[Self.leaveTime]),
        started: time(properties[Self.startTime]),
        exited: time(properties[Self.exitTime])
      )
      return unitResult
    }
  }

  private static let propertyInterface = "org.freedesktop.DBus.Properties"
  /// When the unit stopped being active, and when its main process began and ended.
  private static let leaveTime = "ActiveExitTimestampMonotonic"
  private static let startTime = "ExecMainStartTimestampMonotonic"
  private static let exitTime = "ExecMainExitTimestampMonotonic"

  /// Whether the user's session is ending; false without a manager.
  nonisolated(nonsending) package func isStopping() async -> Bool {
    do throws(UserManagerError) {
      return try await perform { (connection, deadline) throws(UserManagerError) -> Bool in
        let state = [ManagerConnection.managerInterface, "SystemState"]
        let reply = try connection.call("Get", state, deadline, of: Self.propertyInterface)
        return reply.readVariant() == .string("stopping")
      }
    } catch {
      return false
    }
  }

  /// The user's unit that the process belongs to; `nil` if there is none. Does not block.
  package func unit(ofProcess pid: Int32) -> String? { ProcessUnit.name(ofProcess: pid) }

  // MARK: Asking

  nonisolated(nonsending) private func perform<Value: Sendable>(
    _ body: @escaping @Sendable (ManagerConnection, MonotonicTime) throws(UserManagerError) -> Value
  ) async throws(UserManagerError) -> Value {
    let deadline = MonotonicTime.now.after(milliseconds: callMilliseconds)
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<Value, UserManagerError>, Never>) in
      queue.append(
        ManagerQueue.Request(
          deadline: deadline,
          run: { connection in
            do throws(UserManagerError) {
              continuation.resume(returning: .success(try body(connection, deadline)))
            } catch {
              continuation.resume(returning: .failure(error))
            }
          },
          fail: { continuation.resume(returning: .failure($0)) }
        )
      )
    }
    return try result.get()
  }

  /// The object of a unit; `nil` for an invalid unit name.
  private static func load(
    _ unit: String,
    _ connection: ManagerConnection,
    _ deadline: MonotonicTime
  ) throws(UserManagerError) -> String? {
    do throws(UserManagerError) {
      return try connection.call("LoadUnit", [unit], deadline).readString("o")
    } catch {
      if error.kind == .refused { return nil }
      throw error
    }
  }

  private static func properties(
    _ names: Set<String>,
    of path: String,
    _ interface: String,
    _ connection: ManagerConnection,
    _ deadline: MonotonicTime
  ) throws(UserManagerError) -> [String: BusMessage.Value] {
    let kind = "\(ManagerConnection.service).\(interface)"
    return try connection.call("GetAll", [kind], deadline, of: propertyInterface, at: path).readProperties(names)
  }
}
