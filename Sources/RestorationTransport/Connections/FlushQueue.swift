// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// Shares one event loop's time and memory among its connections. It knows the connections with work at the end of the
/// current tick, those with more input than is processed at once, and the load of all. Used on that loop only.
///
/// All answers of a tick are written together afterwards: writing inside the read loop was measured to be slower.
///
/// A connection's first frames are processed as soon as they are read, and further ones while no other connection waits
/// and the tick is young. Otherwise it falls behind: connections that are behind continue in turns, for a slice of each
/// tick. So a connection that sends little waits for one slice, however many others send much. In an old tick first
/// frames wait for their turn as well, so that the loop reads input in between. Turns go round the processes, and round
/// the connections of each.
final class FlushQueue {
  /// How many frames are processed before the first check.
  static let framesAtOnce = 4
  /// How often a connection that was behind may continue before it is the next one's turn.
  private static let stepsPerTurn = 16
  private static let slice = TimeAmount.milliseconds(1)
  /// In an older tick, further connections wait for their turn: answers to hundreds of short messages take less.
  private static let tickMax = TimeAmount.milliseconds(4)

  private let eventLoop: any EventLoop
  /// Whether there are other connections.
  private let isShared: Bool
  private let meter: LoopMeter?
  @exclusivity(unchecked) private var waiting: [ConnectionHandler] = []
  private var spare: [ConnectionHandler] = []
  private var isScheduled = false
  private(set) var load = ReplyLoad()
  /// Connections that continue when the load is no longer high.
  private var crowded: [ObjectIdentifier: ConnectionHandler] = [:]
  private var isTrimScheduled = false
  /// The processes of connections with frames left over, the next one first.
  private var behind: [ProcessAccount] = []
  /// When the tick began, once known. A tick ends when the loop reads input.
  private var tickBegin: NIODeadline?
  /// Its number, and that of the last one with a slice, by the meter.
  private var (tick, lastServed) = (0, 0)
  private var isServing = false
  private var stepsLeft = 0
  /// `nil` before the first check.
  private var sliceEnd: NIODeadline?
  /// Whether the next slice waits until the loop has read input.
  private var isPausing = false

  init(eventLoop: any EventLoop, isShared: Bool, meter: LoopMeter?) {
    (self.eventLoop, self.isShared, self.meter) = (eventLoop, isShared, meter)
  }

  /// Each account with its count: empty when all connections have closed and the tick is over.
  var holdings: [String: Int] {
    ["bytes of replies": load.bytes, "crowded connections": crowded.count, "turns": waiting.count + behind.count]
  }

  /// Schedules the handler's `endTick`, which may add the handler again.
  func add(_ handler: ConnectionHandler) {
    waiting.append(handler)
    schedule()
  }

  /// Whether a connection may process its first frames now, or must wait for its turn.
  func letsBegin() -> Bool { isServing || !isOld() }

  /// Whether the time without checks has passed: a single frame may take long.
  func isOld() -> Bool {
    guard isShared else { return false }
    if isServing { return sliceEnd.map { NIODeadline.now() >= $0 } ?? false }
    if let meter, meter.turnsEnded != tick { (tick, tickBegin) = (meter.turnsEnded, nil) }
    let now = NIODeadline.now()
    guard let tickBegin else {
      tickBegin = now
      schedule()
      return false
    }
    return now >= tickBegin + Self.tickMax
  }

  /// Whether a connection that has processed `framesAtOnce` may process as many again.
  func letsGoOn() -> Bool {
    guard isShared else { return true }
    if isServing {
      guard stepsLeft > 0 else { return false }
      stepsLeft -= 1
    } else if !behind.isEmpty {
      return false
    }
    return hasTime()
  }

  /// The handler's `takeTurn` will be called.
  func fallBehind(_ handler: ConnectionHandler) {
    if !handler.account.isBehind { behind.append(handler.account) }
    handler.account.addBehind(handler)
    schedule()
  }

  private func hasTime() -> Bool {
    let now = NIODeadline.now()
    guard let sliceEnd else {
      sliceEnd = now + Self.slice
      // The slice ends with the tick.
      schedule()
      return true
    }
    return now < sliceEnd
  }

  private func schedule() {
    if isScheduled { return }
    isScheduled = true
    eventLoop.assumeIsolated().execute { self.run() }
  }

  /// Counts a change of one connection's reply bytes. A second after a peak the memory is returned: the allocator
  /// otherwise keeps it as long as the process lives.
  func count(_ difference: Int) {
    let wasHigh = load.isHigh
    let isFarBelowPeak = load.change(by: difference)
    if wasHigh, !load.isHigh {
      for handler in crowded.values { handler.queueForEndOfTick() }
      crowded = [:]
    }
    if isFarBelowPeak { trimSoon() }
  }

  private func trimSoon() {
    guard !isTrimScheduled else { return }
    isTrimScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) {
      self.isTrimScheduled = false
      self.load.trimmed()
      SystemCalls.trimMemory()
    }
  }

  /// The handler's `endTick` will be called when the load is no longer high, because no other event may follow.
  func awaitLowLoad(_ handler: ConnectionHandler) { crowded[ObjectIdentifier(handler)] = handler }

  /// Call after it has closed: its requests may have taken much memory.
  func forget(_ handler: ConnectionHandler) {
    crowded[ObjectIdentifier(handler)] = nil
    if isShared { trimSoon() }
  }

  private func run() {
    isScheduled = true
    if !behind.isEmpty, !isPausing { serve() }
    isScheduled = false
    // The arrays are swapped, so that neither is allocated again.
    swap(&waiting, &spare)
    for handler in spare { handler.endTick() }
    spare.removeAll(keepingCapacity: true)
    sliceEnd = nil
    if meter == nil { tickBegin = nil }
    if !behind.isEmpty, !isPausing { serveLater() }
  }

  private func serveLater() {
    isPausing = true
    eventLoop.schedule(afterTurn: lastServed, of: meter) { [self] in
      isPausing = false
      run()
    }
  }

  /// Lets connections that are behind continue, each at least once if there is time.
  private func serve() {
    isServing = true
    lastServed = meter?.turnsEnded ?? 0
    sliceEnd = nil
    var left = behind.reduce(0) { $0 + $1.behindCount }
    while left > 0, hasTime() {
      left -= 1
      stepsLeft = Self.stepsPerTurn
      nextBehind().takeTurn()
    }
    isServing = false
  }

  private func nextBehind() -> ConnectionHandler {
    let account = behind.removeFirst()
    let handler = account.takeBehind()
    if account.isBehind { behind.append(account) }
    return handler
  }
}
