// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc

/// An application of several processes that is saved and restored. One thread plays all of them.
final class ServingApplication {
  static let name = "\(Requests.application).Rounds"

  private let processes: [LineConnection]
  private let caller: LineConnection
  private let objects: Int
  private let epoll: Int32
  private var states: ServedStates

  /// - Parameter objects: how many there are in all processes together, each with a state of `size` bytes.
  init(_ socket: String, processes count: Int, objects: Int, size: Int) throws {
    processes = try (0..<count).map { _ in try LineConnection(socket) }
    caller = try LineConnection(socket)
    self.objects = objects
    states = ServedStates(size: size)
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    for (index, connection) in (processes + [caller]).enumerated() {
      var event = epoll_event()
      event.events = EPOLLIN.rawValue
      event.data.u32 = UInt32(index)
      epoll_ctl(epoll, EPOLL_CTL_ADD, connection.socket.descriptor, &event)
    }
    try begin()
  }

  deinit { close(epoll) }

  /// One save round: nanoseconds from the call to its answer.
  func save() throws -> UInt64 {
    let (time, answer) = try call("saveApplicationState")
    guard LineConnection.number("objects", in: answer) == objects, answer.contains(#""saved":true"#),
      answer.contains(#""stale":[]"#)
    else { throw Failure("a round saved less than all objects: \(answer.prefix(300))") }
    return time
  }

  /// One restoration of processes that have just registered their objects; the same.
  func restore() throws -> UInt64 {
    for process in processes { try process.call("goodbye", #"{"reason":"restart"}"#) }
    try begin()
    let (time, answer) = try call("restoreApplicationState")
    guard answer.contains(#""skipped":[],"absent":[]"#) else {
      throw Failure("a restoration left objects out: \(answer.prefix(300))")
    }
    return time
  }

  private func begin() throws {
    for (index, process) in processes.enumerated() {
      let serves = #"["encodeRestorableStateWithCoder","decodeRestorableStateWithCoder"]"#
      try process.call(
        "initialize",
        #"""
        {"application":"\#(Self.name)","process":"p\#(index)","messageBytesMax":1048576,"serves":\#(serves)}
        """#
      )
      var rest = Array(stride(from: index, to: objects, by: processes.count))[...]
      while !rest.isEmpty {
        let batch = rest.prefix(64)
        rest = rest.dropFirst(64)
        try process.send(batch.map(Self.registration).joined(separator: "\n"))
        for _ in batch { _ = try process.answer() }
      }
    }
  }

  private static func registration(_ object: Int) -> String {
    let parameters = #"{"restorationIdentifier":"o\#(object)"}"#
    return #"{"jsonrpc":"2.0","id":\#(object),"method":"registerObjectForStateRestoration","params":\#(parameters)}"#
  }

  /// Calls a method, and serves the processes until it is answered.
  private func call(_ method: String) throws -> (nanoseconds: UInt64, answer: String) {
    let start = Clock.now
    let parameters = #"{"application":"\#(Self.name)","deadlineMilliseconds":60000}"#
    try caller.send(#"{"jsonrpc":"2.0","id":2,"method":"\#(method)","params":\#(parameters)}"#)
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    while true {
      let ready = Int(epoll_wait(epoll, &events, Int32(events.count), 70_000))
      guard ready != 0 else { throw Failure("\(method) had no answer for 70 seconds") }
      for event in events.prefix(max(0, ready)) {
        let index = Int(event.data.u32)
        if index == processes.count {
          if let answer = try caller.line(waiting: false) { return (Clock.now - start, String(cString: answer)) }
        } else {
          while let line = try processes[index].line(waiting: false) {
            if let answer = states.answer(to: line) { try processes[index].socket.send(answer) }
          }
        }
      }
    }
  }
}
