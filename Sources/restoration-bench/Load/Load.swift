// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc

/// Clients that each make a request as soon as an earlier one is answered.
package struct Load: Sendable {
  package let socket: String
  package var opening: [Opening] = []
  package let request: MessageTemplate
  package let replies: ReplyFraming
  package var clients = 1
  /// Requests of one client that are under way.
  package var depth = 1
  /// How many objects the requests are about; the clients begin evenly apart.
  package var keys = 1
  package var seconds = 1.0
  /// Seconds before those that count.
  package var warmUp = 0.0
  /// So many requests in all, each of which counts, instead of a time.
  package var requests: Int?
  /// Those whose CPU time is told.
  package var servers: [Int32] = []

  /// Runs it on the calling thread.
  func run() throws -> Figures {
    let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw Failure.system("epoll_create1") }
    defer { close(epoll) }
    let connections = try (0..<clients).map { try LoadConnection(self, number: $0) }
    for index in connections.indices { watch(connections[index], index, epoll, EPOLL_CTL_ADD) }
    return try run(connections, epoll)
  }

  /// As many clients, requests and objects as the subject has.
  mutating func take(_ subject: Subject) {
    (clients, depth, keys) = (subject.clients, subject.depth, max(1, subject.objects))
  }

  /// Stores a state of each object of the subject.
  func fill(_ subject: Subject) throws {
    var load = self
    (load.clients, load.depth) = (min(4, subject.objects), 16)
    (load.keys, load.requests) = (subject.objects, subject.objects)
    if let failure = try load.run().failure { throw Failure("\(subject.server) refused a state: \(failure)") }
  }

  private func run(_ connections: [LoadConnection], _ epoll: Int32) throws -> Figures {
    var figures = Figures()
    let start = Clock.now
    let begin = start + (requests == nil ? Self.nanoseconds(warmUp) : 0)
    let end = requests == nil ? begin + Self.nanoseconds(seconds) : .max
    var (own, theirs) = (Clock.ownCPU, Clock.cpu(of: servers))
    var isCounting = begin == start
    for index in connections.indices { try ask(connections, index, start, epoll) }
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    var now = start
    var missing = requests ?? .max
    while now < end, missing > 0 {
      if connections.count == 1, !connections[0].isBlocked {
        missing -= try connections[0].take(&figures, from: begin, waiting: true)
        now = Clock.now
        try ask(connections, 0, now, epoll)
      } else {
        let ready = Int(epoll_wait(epoll, &events, Int32(events.count), Int32(1_000 * Socket.patience)))
        guard ready != 0 else { throw Failure("no reply for \(Socket.patience) seconds") }
        for event in events.prefix(max(0, ready)) {
          missing -= try serve(connections, event, &figures, begin, epoll)
        }
        now = Clock.now
      }
      if !isCounting, now >= begin {
        isCounting = true
        (own, theirs) = (Clock.ownCPU, Clock.cpu(of: servers))
      }
    }
    figures.seconds = Double(now - begin) / 1e9
    figures.generatorCPU = Clock.ownCPU - own
    if let theirs, let later = Clock.cpu(of: servers) { figures.serverCPU = later - theirs }
    return figures
  }

  private func serve(
    _ connections: [LoadConnection],
    _ event: epoll_event,
    _ figures: inout Figures,
    _ begin: UInt64,
    _ epoll: Int32
  ) throws -> Int {
    let index = Int(event.data.u32)
    let answered = try connections[index].take(&figures, from: begin, waiting: false)
    try ask(connections, index, Clock.now, epoll)
    return answered
  }

  private func ask(_ connections: [LoadConnection], _ index: Int, _ now: UInt64, _ epoll: Int32) throws {
    let connection = connections[index]
    let wasBlocked = connection.isBlocked
    try connection.ask(now)
    if connection.isBlocked != wasBlocked { watch(connection, index, epoll, EPOLL_CTL_MOD) }
  }

  /// The share of a client that is the number-th: where it begins, if all of them have so many together.
  func share(_ number: Int, of all: Int) -> Int { (number * all + clients - 1) / clients }

  private func watch(_ connection: LoadConnection, _ index: Int, _ epoll: Int32, _ operation: Int32) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue | (connection.isBlocked ? EPOLLOUT.rawValue : 0)
    event.data.u32 = UInt32(index)
    epoll_ctl(epoll, operation, connection.socket.descriptor, &event)
  }

  private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }
}
