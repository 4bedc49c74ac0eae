// SPDX-License-Identifier: Apache-2.0

internal import NIOCore

/// What the connections of one event loop share: its time and its memory. It knows which of them have work to do at the
/// end of the current tick, of which more waits than is taken at once, and the load of all. Used on that loop only.
///
/// All answers of a tick are written together afterwards: writing inside the read loop was measured to be slower.
///
/// A connection's first frames are taken as soon as they are read. It may go on while nobody else waits and the tick is
/// young. Otherwise it falls behind: those that are behind go on in turns, for a slice of each tick. So a connection
/// that sends little waits for one slice of those that send much, however many these are. When a tick is old, first
/// frames wait for their turn as well, so that the loop looks for input in between. Turns go round the processes, and
/// round the connections of each.
final class FlushQueue {
  /// How many frames are taken before the first question whether to go on.
  static let framesAtOnce = 4
  /// How often a connection that was behind may go on before it is the next one's turn.
  private static let stepsPerTurn = 16
  private static let slice = TimeAmount.milliseconds(1)
  /// Beyond it, further connections wait for their turn: answers to hundreds of short messages take less.
  private static let tickMax = TimeAmount.milliseconds(4)

  private let eventLoop: any EventLoop
  /// Whether there is anybody to share with.
  private let isShared: Bool
  private let meter: LoopMeter?
  @exclusivity(unchecked) private var waiting: [ConnectionHandler] = []
  private var spare: [ConnectionHandler] = []
  private var isScheduled = false
  private(set) var load = ReplyLoad()
  /// The connections that are to go on when the load is no longer high.
  private var crowded: [ObjectIdentifier: ConnectionHandler] = [:]
  private var isTrimScheduled = false
  /// The processes of connections with frames left over, the next one first.
  private var behind: [ProcessAccount] = []
  /// When the tick began, if anybody has asked. A tick ends when the loop looks for input.
  private var tickBegin: NIODeadline?
  /// Its number, and that of the last one with a slice, by the meter.
  private var (tick, lastServed) = (0, 0)
  private var isServing = false
  private var stepsLeft = 0
  /// `nil` until somebody asks for time.
  private var sliceEnd: NIODeadline?
  /// Whether the next slice waits until the loop has looked for input.
  private var isPausing = false

  init(eventLoop: any EventLoop, isShared: Bool, meter: LoopMeter?) {
    (self.eventLoop, self.isShared, self.meter) = (eventLoop, isShared, meter)
  }

  /// Each account with what it counts: nothing when all connections have closed and the tick is over.
  var holdings: [String: Int] {
    ["bytes of replies": load.bytes, "crowded connections": crowded.count, "turns": waiting.count + behind.count]
  }

  /// Schedules the handler's `endTick`, which may add the handler again.
  func add(_ handler: ConnectionHandler) {
    waiting.append(handler)
    schedule()
  }

  /// Whether a connection may take its first frames now, or has to wait for its turn.
  func letsBegin() -> Bool { isServing || !isOld() }

  /// Whether the time has passed in which frames are taken without asking: a single one may take long.
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

  /// Whether a connection that has taken `framesAtOnce` may take as many again.
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
      // It ends with the tick.
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

  /// One connection holds so many bytes of replies more, or less. A second after a peak the memory is given back: the
  /// allocator keeps it otherwise, for as long as the process lives.
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

  /// The handler's `endTick` will be called when the load is no longer high: nothing else may happen to it then.
  func awaitLowLoad(_ handler: ConnectionHandler) { crowded[ObjectIdentifier(handler)] = handler }

  /// It has closed: what it has sent may have taken much memory.
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

  /// Lets those that are behind go on, each at least once if there is time.
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
