// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import SeededRandom
internal import TestSupport
internal import Testing

/// The order in which a session answers the broker.
@Suite struct ServedCallQueueTests {
  private var queue = ServedCallQueue()

  private mutating func add(_ lane: ServedCallQueue.Lane) -> (number: Int, actions: [ServedCallQueue.Action]) {
    let number = queue.makeNumber()
    return (number, queue.add(number, lane))
  }

  @Test mutating func callsInOrderRunOneAfterTheOther() {
    let first = add(.inOrder)
    let second = add(.inOrder)
    let third = add(.notice)
    #expect(first.actions == [.begin(first.number)])
    #expect(second.actions == [] && third.actions == [])
    #expect(queue.ended(first.number) == [.begin(second.number)])
    #expect(queue.ended(first.number) == [])
    #expect(queue.ended(second.number) == [.begin(third.number)])
    #expect(queue.ended(third.number) == [])
    #expect(queue.count == 0)
  }

  @Test mutating func aDataSourceIsAskedWhileAnotherCallWaits() {
    let decode = add(.inOrder)
    let source = add(.atOnce)
    #expect(decode.actions == [.begin(decode.number)])
    #expect(source.actions == [.begin(source.number)])
    #expect(queue.ended(source.number) == [])
    #expect(queue.ended(decode.number) == [])
  }

  @Test mutating func whatRunsIsCancelledWithItsConnectionAndTheNextWaitsForItsEnd() {
    let first = add(.inOrder)
    let second = add(.inOrder)
    let finished = add(.notice)
    let source = add(.atOnce)
    #expect(queue.drop() == [.cancel(source.number), .cancel(first.number), .drop(second.number)])
    let next = add(.inOrder)
    #expect(next.actions == [])
    #expect(queue.ended(first.number) == [.begin(finished.number)])
    // It is delivered anyway: the broker does not repeat it.
    #expect(queue.drop() == [.cancel(source.number), .drop(next.number)])
    #expect(queue.ended(finished.number) == [])
    #expect(queue.ended(source.number) == [])
    #expect(queue.count == 0)
  }

  @Test(arguments: 0..<20) func whateverHappensEachBeginsAtMostOnceAndOneAtATime(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    var queue = ServedCallQueue()
    var lanes: [Int: ServedCallQueue.Lane] = [:]
    var begun: [Int] = []
    var running: Set<Int> = []
    func take(_ actions: [ServedCallQueue.Action]) {
      for action in actions {
        switch action {
        case .begin(let number):
          #expect(!begun.contains(number))
          begun.append(number)
          running.insert(number)
        case .cancel(let number): #expect(running.contains(number))
        case .drop(let number): #expect(!begun.contains(number) && lanes[number] == .inOrder)
        }
      }
      #expect(running.filter { lanes[$0] != .atOnce }.count <= 1)
    }
    for _ in 0..<400 {
      switch Int.random(in: 0..<10, using: &chance) {
      case 0: take(queue.drop())
      case 1...4:
        let number = queue.makeNumber()
        lanes[number] = ServedCallQueue.Lane.allCases.randomElement(using: &chance)
        take(queue.add(number, lanes[number] ?? .inOrder))
      default:
        guard let number = running.sorted().randomElement(using: &chance) else { continue }
        running.remove(number)
        take(queue.ended(number))
      }
    }
    while let number = running.sorted().first {
      running.remove(number)
      take(queue.ended(number))
    }
    #expect(queue.count == 0)
    let inOrder = begun.filter { lanes[$0] != .atOnce }
    #expect(inOrder == inOrder.sorted())
    #expect(lanes.allSatisfy { $0.value != .notice || begun.contains($0.key) })
  }
}
