// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Requests to the manager in order, and the thread that makes them.
///
/// While there are no requests the thread sleeps without a connection, so the manager's other signals never wake it.
final class ManagerQueue: Sendable {
  struct Request: Sendable {
    /// The caller waits no longer than this.
    let deadline: MonotonicTime
    let run: @Sendable (ManagerConnection) -> Void
    let fail: @Sendable (UserManagerError) -> Void
  }

  private struct State {
    var requests: [Request] = []
    var wakeUp: WakeUp?
    var hasEnded = false
  }

  private let state = Mutex(State())

  /// Runs or fails the request on the thread; without a thread it fails at once.
  func append(_ request: Request) {
    let wakeUp = state.withLock { state -> WakeUp? in
      if state.wakeUp == nil {
        guard let wakeUp = WakeUp(), BackgroundThread.start("user-manager", { self.run(wakeUp) }) else { return nil }
        state.wakeUp = wakeUp
      }
      state.requests.append(request)
      return state.wakeUp
    }
    guard let wakeUp else {
      return request.fail(UserManagerError(.unavailable, "no thread is left to call the user manager"))
    }
    wakeUp.signal()
  }

  /// Ends the thread when all requests are done.
  func end() {
    let wakeUp = state.withLock { state in
      state.hasEnded = true
      return state.wakeUp
    }
    wakeUp?.signal()
  }

  private func run(_ wakeUp: WakeUp) {
    var connection: ManagerConnection?
    while true {
      let (requests, hasEnded) = state.withLock { state in
        defer { state.requests = [] }
        return (state.requests, state.hasEnded)
      }
      for request in requests { Self.serve(request, &connection) }
      connection?.dispatch()
      if connection?.isBroken == true { connection = nil }
      if let connection, connection.isStarting {
        connection.wait(or: wakeUp.descriptor)
        // Takes the signal, because its cause is handled below.
        wakeUp.clear()
      } else if requests.isEmpty {
        connection = nil
        if hasEnded { return }
        wakeUp.wait()
      }
    }
  }

  private static func serve(_ request: Request, _ connection: inout ManagerConnection?) {
    do throws(UserManagerError) {
      guard request.deadline.remainingMicroseconds > 0 else {
        throw UserManagerError(.timedOut, "the user manager does not answer; see systemctl --user status")
      }
      let open: ManagerConnection
      if let connection { open = connection } else { open = try ManagerConnection.open(request.deadline) }
      connection = open
      request.run(open)
      if open.isBroken {
        open.fail(UserManagerError(.unavailable, "the connection to the user manager has ended"))
        connection = nil
      }
    } catch {
      request.fail(error)
    }
  }
}
