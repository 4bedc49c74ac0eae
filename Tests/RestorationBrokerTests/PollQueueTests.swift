// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import Testing

@Suite struct PollQueueTests {
  private static func notification(_ name: String, bytes: Int = 2) -> PollQueue.Entry {
    let text = "\"" + String(repeating: "n", count: bytes - 2) + "\""
    return PollQueue.Entry(call: nil, method: name, parameters: JSONText(validated: Array(text.utf8)))
  }

  private static func call(_ number: CallNumber, bytes: Int = 2) -> PollQueue.Entry {
    let entry = notification("call", bytes: bytes)
    return PollQueue.Entry(call: number, method: "call \(number)", parameters: entry.parameters)
  }

  private static func drain(_ queue: inout PollQueue) -> [String] {
    var methods: [String] = []
    while let entry = queue.next() { methods.append(entry.method) }
    return methods
  }

  @Test func whatCameFirstIsHandedOutFirstAndOnce() {
    var queue = PollQueue()
    for entry in [Self.notification("a"), Self.call(1), Self.notification("b"), Self.call(2)] { queue.add(entry) }
    #expect(queue.calls == [1, 2])
    #expect(Self.drain(&queue) == ["a", "call 1", "b", "call 2"])
    #expect(queue.isEmpty)
    #expect(queue.next() == nil)
  }

  @Test func aCallThatIsGivenUpIsNotHandedOut() {
    var queue = PollQueue()
    for number: CallNumber in 1...3 { queue.add(Self.call(number)) }
    queue.remove(2)
    queue.remove(9)
    #expect(!queue.holds(2))
    #expect(queue.holds(3))
    #expect(Self.drain(&queue) == ["call 1", "call 3"])
  }

  @Test func theOldestNotificationsGoWhenTooManyWaitAndCallsStay() {
    var queue = PollQueue()
    queue.add(Self.call(1))
    for number in 1...PollQueue.countMax { queue.add(Self.notification("n\(number)")) }
    queue.add(Self.call(2))
    queue.add(Self.notification("last"))
    let methods = Self.drain(&queue)
    #expect(methods.count == PollQueue.countMax + 2)
    #expect(methods.prefix(2) == ["call 1", "n2"])
    #expect(methods.suffix(2) == ["call 2", "last"])
  }

  @Test func theBytesOfNotificationsAreBoundedExactly() {
    var queue = PollQueue()
    let half = PollQueue.bytesMax / 2
    queue.add(Self.notification("a", bytes: half))
    queue.add(Self.call(1, bytes: 2 * PollQueue.bytesMax))
    queue.add(Self.notification("b", bytes: half))
    queue.add(Self.notification("c", bytes: 2))
    #expect(Self.drain(&queue) == ["call 1", "b", "c"])
    // Removed entries no longer count.
    queue.add(Self.notification("d", bytes: half))
    queue.add(Self.notification("e", bytes: half))
    #expect(Self.drain(&queue) == ["d", "e"])
  }

  @Test func theNewestNotificationStaysHoweverLargeItIs() {
    var queue = PollQueue()
    queue.add(Self.notification("a"))
    queue.add(Self.notification("b", bytes: PollQueue.bytesMax + 1))
    #expect(Self.drain(&queue) == ["b"])
  }

  @Test func whenTheBrokerForgetsItsCallsNotificationsStay() {
    var queue = PollQueue()
    for entry in [Self.notification("a"), Self.call(1), Self.notification("b")] { queue.add(entry) }
    queue.removeCalls()
    #expect(queue.calls == [])
    #expect(Self.drain(&queue) == ["a", "b"])
  }
}
