// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A way between a Unix socket and the one that it leads to, which a test slows down, blocks and cuts: a network between
/// processes of one machine.
package final class FaultyRoute: Sendable {
  /// From who connects to who listens, or back.
  package enum Direction: Int, CaseIterable, Sendable { case there, back }

  /// What befalls the bytes that pass.
  package struct Weather: Hashable, Sendable {
    /// Nothing arrives, and nobody hears of it: bytes wait until that changes.
    package var blocked: Set<Direction> = []
    /// Connections end, and there are no new ones.
    package var isCut = false
    package var delayMilliseconds: Int64 = 0
    /// In each direction of a connection; `nil` for as fast as can be.
    package var bytesPerSecond: Int64?

    package init() {}
  }

  /// What the thread shares with the test.
  private final class Shared: Sendable {
    let weather = Mutex(Weather())
    let target: Mutex<String>
    let isOver = Atomic(false)

    init(_ target: String) { self.target = Mutex(target) }
  }

  package let path: String
  private let shared: Shared
  private let wake: FileDescriptor
  private let thread: Mutex<pthread_t?>

  /// Listens at `path`, and leads to `target`, which need not listen yet.
  package init(from path: String, to target: String) throws {
    let (wake, other) = try FileDescriptor.socketPair()
    let shared = Shared(target)
    (self.path, self.wake, self.shared) = (path, wake, shared)
    let listener = try FileDescriptor.listening(at: path)
    thread = Mutex(
      Thread.start {
        let relay = Relay(listener: listener, wake: other)
        while !shared.isOver.load(ordering: .acquiring) {
          relay.turn(shared.weather.withLock { $0 }, to: shared.target.withLock { $0 })
        }
      }
    )
  }

  deinit { stop() }

  /// Changes what befalls bytes from now on.
  package func change(_ body: (inout Weather) -> Void) {
    shared.weather.withLock { body(&$0) }
    try? wake.write([1])
  }

  /// Connections that come from now on are led elsewhere.
  package func lead(to target: String) { shared.target.withLock { $0 = target } }

  /// Ends all connections.
  package func stop() {
    guard let thread = thread.withLock({ $0.take() }) else { return }
    shared.isOver.store(true, ordering: .releasing)
    try? wake.write([1])
    pthread_join(thread, nil)
  }
}

/// A thread of its own, as it waits in `poll`.
private enum Thread {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  static func start(_ run: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let body = Unmanaged.passRetained(Body(run)).toOpaque()
    let result = pthread_create(
      &thread,
      nil,
      { pointer in
        pointer.map { Unmanaged<Body>.fromOpaque($0).takeRetainedValue().run() }
        return nil
      },
      body
    )
    precondition(result == 0, "no thread for a route")
    return thread
  }
}

/// What the thread of a route owns.
private final class Relay {
  private let listener: FileDescriptor
  private let wake: FileDescriptor
  private var links: [Link] = []

  init(listener: FileDescriptor, wake: FileDescriptor) { (self.listener, self.wake) = (listener, wake) }

  /// Waits until something can be done, and does it.
  func turn(_ weather: FaultyRoute.Weather, to target: String) {
    if weather.isCut { links = [] }
    var entries = [wake, listener].map { pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0) }
    let now = Deadline.now
    var timeout: Int64 = -1
    for link in links {
      entries += link.entries(weather, now)
      if let due = link.due(weather) { timeout = timeout < 0 ? max(0, due - now) : min(timeout, max(0, due - now)) }
    }
    poll(&entries, nfds_t(entries.count), Int32(clamping: timeout))
    if entries[0].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 64)
      _ = read(wake.number, &bytes, bytes.count)
    }
    for (index, link) in links.enumerated() {
      link.move(entries[2 + 2 * index], entries[3 + 2 * index], weather, Deadline.now)
    }
    links.removeAll(where: \.isOver)
    if entries[1].revents != 0 { accept(weather, target) }
  }

  private func accept(_ weather: FaultyRoute.Weather, _ target: String) {
    let number = Glibc.accept(listener.number, nil, nil)
    guard number >= 0 else { return }
    // Programs that the test starts must not hold it open.
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    let client = FileDescriptor(owning: number)
    guard !weather.isCut, let server = try? FileDescriptor.connected(to: target) else { return }
    links.append(Link(client, server))
  }
}

/// A connection that came, and the one that was made for it.
private final class Link {
  /// Bytes on their way, and when they arrive.
  private struct Flow {
    var chunks: [(bytes: ArraySlice<UInt8>, due: Int64)] = []
    var isRead = false
    var isWritten = false

    var bytes: Int { chunks.reduce(0) { $0 + $1.bytes.count } }
  }

  private static let chunkBytes = 16 << 10
  private static let flowBytesMax = 256 << 10
  private let ends: [FileDescriptor]
  private var flows = [Flow(), Flow()]
  private(set) var isOver = false

  init(_ client: FileDescriptor, _ server: FileDescriptor) { ends = [client, server] }

  private func passes(_ index: Int, _ weather: FaultyRoute.Weather, _ now: Int64) -> Bool {
    let isBlocked = weather.blocked.contains { $0.rawValue == index }
    return !isBlocked && flows[index].chunks.first.map { $0.due <= now } ?? flows[index].isRead
  }

  /// When the next bytes arrive; `nil` if that is not a matter of time.
  func due(_ weather: FaultyRoute.Weather) -> Int64? {
    flows.indices.filter { index in !weather.blocked.contains { $0.rawValue == index } }
      .compactMap { flows[$0].chunks.first?.due }.filter { $0 > Deadline.now }.min()
  }

  func entries(_ weather: FaultyRoute.Weather, _ now: Int64) -> [pollfd] {
    [0, 1].map { index in
      let reads = !flows[index].isRead && flows[index].bytes < Self.flowBytesMax
      let writes = passes(1 - index, weather, now) && !flows[1 - index].isWritten
      let events = (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
      return pollfd(fd: events == 0 ? -1 : ends[index].number, events: events, revents: 0)
    }
  }

  func move(_ client: pollfd, _ server: pollfd, _ weather: FaultyRoute.Weather, _ now: Int64) {
    for (index, entry) in [client, server].enumerated() where !isOver {
      if entry.revents & Int16(POLLERR | POLLNVAL) != 0 { isOver = true }
      if entry.revents & Int16(POLLIN | POLLHUP) != 0, !flows[index].isRead { read(index, weather, now) }
      if entry.revents & Int16(POLLOUT) != 0 { write(1 - index) }
    }
    if flows.allSatisfy(\.isWritten) { isOver = true }
  }

  private func read(_ index: Int, _ weather: FaultyRoute.Weather, _ now: Int64) {
    var bytes = [UInt8](repeating: 0, count: Self.chunkBytes)
    let count = Glibc.read(ends[index].number, &bytes, bytes.count)
    guard count > 0 else {
      flows[index].isRead = true
      return
    }
    let begin = max(now + weather.delayMilliseconds, flows[index].chunks.last?.due ?? 0)
    let due = begin + (weather.bytesPerSecond.map { Int64(count) * 1_000 / $0 } ?? 0)
    flows[index].chunks.append((bytes[..<count], due))
  }

  private func write(_ index: Int) {
    guard let chunk = flows[index].chunks.first else {
      if flows[index].isRead, !flows[index].isWritten {
        flows[index].isWritten = true
        shutdown(ends[1 - index].number, Int32(SHUT_WR))
      }
      return
    }
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    let count = chunk.bytes.withUnsafeBytes { send(ends[1 - index].number, $0.baseAddress, $0.count, flags) }
    guard count >= 0 else {
      isOver = errno != EAGAIN && errno != EINTR
      return
    }
    flows[index].chunks[0].bytes = chunk.bytes.dropFirst(count)
    if flows[index].chunks[0].bytes.isEmpty { flows[index].chunks.removeFirst() }
  }
}
