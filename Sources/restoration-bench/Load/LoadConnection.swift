// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What is said first on a connection, and how its replies look. Requests follow once the last one is answered.
package struct Opening: Sendable {
  let message: [UInt8]
  let replies: ReplyFraming
}

/// One client: keeps some requests under way.
///
/// Its output is a row of copies of the template, of which only numbers are written anew.
final class LoadConnection {
  let socket: Socket
  private let load: Load
  private let firstKey: Int
  /// Requests that it may still make.
  private var quota: Int
  private var sent = 0
  private var answered = 0
  /// When requests were made, by their number; 0 if none has that number.
  private let times: UnsafeMutablePointer<UInt64>
  private let mask: Int
  private let input = Input()
  private let output: UnsafeMutablePointer<UInt8>
  private let room: Int
  private var filled = 0
  private var flushed = 0
  /// Whether the socket did not take all of the output.
  private(set) var isBlocked = false

  init(_ load: Load, number: Int) throws {
    self.load = load
    firstKey = load.share(number, of: load.keys)
    quota = load.requests.map { load.share(number + 1, of: $0) - load.share(number, of: $0) } ?? .max
    socket = try Socket(load.socket)
    let template = load.request.bytes
    let copies = min(load.depth, max(1, (1 << 20) / template.count))
    room = copies * template.count
    output = .allocate(capacity: room)
    for copy in 0..<copies { (output + copy * template.count).update(from: template, count: template.count) }
    var slots = 64
    while slots < 4 * load.depth { slots *= 2 }
    mask = slots - 1
    times = .allocate(capacity: slots)
    times.initialize(repeating: 0, count: slots)
    for opening in load.opening { try open(opening) }
  }

  deinit {
    output.deallocate()
    times.deallocate()
  }

  private func open(_ opening: Opening) throws {
    try socket.send(opening.message)
    while true {
      if let reply = opening.replies.reply(in: input.unused, count: input.count) {
        input.use(reply.length)
        guard !reply.isRefusal else { throw Failure("the server refused a connection") }
        if reply.isAnswer { return }
      } else {
        _ = try input.read(socket)
      }
    }
  }

  /// Makes as many requests as may be under way, and sends what the socket takes.
  func ask(_ now: UInt64) throws {
    let size = load.request.bytes.count
    while sent - answered < load.depth, filled + size <= room, quota > 0, times[(sent + 1) & mask] == 0 {
      sent += 1
      quota -= 1
      times[sent & mask] = now
      let key = (firstKey + sent - 1) % load.keys
      load.request.fill(output + filled, id: MessageTemplate.firstID + sent, key: key)
      filled += size
    }
    while flushed < filled {
      let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
      let count = Glibc.send(socket.descriptor, output + flushed, filled - flushed, flags)
      if count < 0 {
        if errno == EINTR { continue }
        guard errno == EAGAIN else { throw Failure.system("the server takes no more") }
        isBlocked = true
        return
      }
      flushed += count
    }
    (filled, flushed, isBlocked) = (0, 0, false)
  }

  /// Reads what is there. Figures get the requests that were answered from `begin` on.
  ///
  /// - Returns: how many requests were answered.
  func take(_ figures: inout Figures, from begin: UInt64, waiting: Bool) throws -> Int {
    guard try input.read(socket, flags: waiting ? 0 : Int32(MSG_DONTWAIT)) else { return 0 }
    let now = Clock.now
    let before = answered
    while let reply = load.replies.reply(in: input.unused, count: input.count) {
      if reply.isRefusal, figures.failure == nil { figures.failure = text(reply) }
      if reply.isAnswer { note(reply, now, &figures, from: begin) }
      input.use(reply.length)
    }
    return answered - before
  }

  private func note(_ reply: ReplyFraming.Reply, _ now: UInt64, _ figures: inout Figures, from begin: UInt64) {
    let request = reply.id.map { $0 - MessageTemplate.firstID } ?? answered + 1
    guard request > 0, request <= sent, times[request & mask] != 0 else { return }
    if now >= begin {
      figures.latency.note(now - times[request & mask])
      if reply.isRefusal { figures.failed += 1 }
    }
    times[request & mask] = 0
    answered += 1
  }

  private func text(_ reply: ReplyFraming.Reply) -> String {
    let bytes = UnsafeBufferPointer(start: input.unused, count: min(reply.length, 300))
    return String(decoding: bytes.filter { $0 >= 32 && $0 < 127 }, as: UTF8.self)
  }
}
