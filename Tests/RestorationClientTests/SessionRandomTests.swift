// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Thousands of events in any order, checked against the state machine's invariants.
@Suite(.passesTurnstile) struct SessionRandomTests {
  typealias Machine = RestorationSession.StateMachine

  /// The broker's side, and a record of the machine's actions.
  private struct World {
    var machine: Machine
    var generator: SeededGenerator
    var now: Int64 = 0
    var calls: [Int: CallQueue.Call] = [:]
    var open: Set<Int> = []
    /// With the broker, in the order of sending on this connection.
    var sent: [Int] = []
    var lastSent: [Int: Int] = [:]
    var timesSent: [Int: Int] = [:]
    var registering: [Int] = []
    var objects: Set<Int> = []
    var isUp = true
    var isInitializing = false
    var isConnecting = false
    var isWaiting = false
    var alarm: Int64?

    init(seed: UInt64, timeout: Int64?) {
      machine = Machine(windowBytes: 200, timeout: timeout, at: 0)
      generator = SeededGenerator(seed: seed)
    }

    mutating func carryOut(_ actions: [Machine.Action]) {
      for action in actions {
        switch action {
        case .send(let ticket): send(ticket)
        case .complete(let ticket), .cancel(let ticket), .fail(let ticket, _):
          #expect(open.remove(ticket) != nil, "\(ticket) ended twice")
          sent.removeAll { $0 == ticket }
        case .forget(let ticket):
          #expect(sent.contains(ticket))
        case .connect: (isConnecting, isWaiting) = (true, false)
        case .wait: isWaiting = true
        case .initialize: isInitializing = true
        case .register(let object):
          #expect(isUp && !registering.contains(object))
          registering.append(object)
        case .disconnect: lose()
        case .setAlarm(let time): alarm = time
        case .ping: #expect(isUp && !open.isEmpty)
        case .report, .replay: break
        case .close: Issue.record("\(action)")
        }
      }
    }

    private mutating func send(_ ticket: Int) {
      #expect(isUp && open.contains(ticket) && !sent.contains(ticket))
      timesSent[ticket, default: 0] += 1
      guard let call = calls[ticket] else { return }
      #expect(call.isIdempotent || timesSent[ticket] == 1, "\(ticket) was sent twice")
      for object in call.objects {
        #expect(machine.isRegistered(object))
        #expect(lastSent[object] ?? 0 < ticket, "\(ticket) was sent after \(lastSent[object] ?? 0)")
        lastSent[object] = ticket
      }
      sent.append(ticket)
      let bytes = sent.reduce(0) { $0 + (calls[$1]?.bytes ?? 0) }
      #expect(bytes <= 200 || sent.count == 1)
    }

    mutating func lose() {
      (isUp, isInitializing) = (false, false)
      (sent, registering, lastSent) = ([], [], [:])
      carryOut(machine.lost(at: now))
    }

    mutating func submit() {
      let ticket = machine.makeTicket()
      let some = objects.shuffled(using: &generator).prefix(Int.random(in: 0...2, using: &generator))
      let call = CallQueue.Call(
        isIdempotent: Int.random(in: 0..<5, using: &generator) > 0,
        objects: Array(some),
        bytes: Int.random(in: 1...250, using: &generator)
      )
      calls[ticket] = call
      open.insert(ticket)
      carryOut(machine.submit(ticket, call, at: now))
    }

    mutating func step() {
      now += Int64.random(in: 0...300, using: &generator)
      switch Int.random(in: 0..<20, using: &generator) {
      case 0..<7: submit()
      case 7..<12:
        if isUp, let ticket = sent.randomElement(using: &generator) {
          machine.heard(at: now)
          if Int.random(in: 0..<8, using: &generator) == 0, let actions = machine.unknownObject(ticket) {
            return sendAgain(ticket, actions)
          }
          if Int.random(in: 0..<20, using: &generator) == 0, let actions = machine.shuttingDown(ticket) {
            return sendAgain(ticket, actions)
          }
          carryOut(machine.answered(ticket, isFinal: Int.random(in: 0..<30, using: &generator) > 0))
        }
      case 12:
        if let ticket = open.sorted().randomElement(using: &generator) { carryOut(machine.cancelled(ticket)) }
      case 13:
        let object = objects.count + 1
        machine.registered(object, below: objects.sorted().randomElement(using: &generator))
        objects.insert(object)
      case 14: if isUp || isInitializing { lose() }
      case 15:
        if let alarm, alarm <= now {
          self.alarm = nil
          carryOut(machine.alarm(at: now))
        }
      default: advance()
      }
    }

    /// The broker's answer makes the session send the call again on the same connection.
    private mutating func sendAgain(_ ticket: Int, _ actions: [Machine.Action]) {
      sent.removeAll { $0 == ticket }
      timesSent[ticket, default: 1] -= 1
      for object in calls[ticket]?.objects ?? [] { lastSent[object] = nil }
      carryOut(actions)
    }

    /// The connection, or the registering of objects, comes one step further.
    mutating func advance() {
      if isWaiting {
        isWaiting = false
        carryOut(machine.elapsed())
      } else if isConnecting {
        isConnecting = false
        carryOut(Bool.random(using: &generator) ? machine.connected() : machine.connectFailed())
      } else if isInitializing {
        (isUp, isInitializing) = (true, false)
        carryOut(machine.initialized(isResumed: Int.random(in: 0..<3, using: &generator) > 0, at: now))
      } else if let object = registering.first {
        registering.removeFirst()
        machine.heard(at: now)
        carryOut(machine.settled(object, isRegistered: Int.random(in: 0..<20, using: &generator) > 0))
      }
    }
  }

  @Test(arguments: 1...12, [nil, 700, 5_000])
  func everyCallEndsOnceAndNothingIsSentOutOfOrder(_ seed: UInt64, timeout: Int64?) {
    var world = World(seed: seed, timeout: timeout)
    for _ in 0..<2_000 { world.step() }
    // When everything goes well from here on, everything ends.
    for _ in 0..<100_000 where !world.open.isEmpty {
      world.advance()
      if world.isUp, let ticket = world.sent.first { world.carryOut(world.machine.answered(ticket, isFinal: true)) }
    }
    #expect(world.open.isEmpty)
    #expect(world.machine.pending == 0)
    #expect(world.timesSent.values.max() ?? 0 > 1)
  }
}
