// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import Testing

@Suite struct NotificationQueueTests {
  private var queue = NotificationQueue<BrokerNotification>(capacity: 3)

  private func moved(_ object: Int64) -> BrokerNotification {
    .pathChanged(PathChanged(object: object, path: ["Main"]))
  }

  @Test mutating func notificationsAreGivenOnceInTheirOrder() {
    queue.append(moved(1))
    queue.append(moved(2))
    #expect(queue.next() == moved(1))
    #expect(queue.next() == moved(2))
    #expect(queue.next() == nil)
  }

  @Test mutating func whatIsBeyondTheCapacityIsCountedWhereItIsMissing() {
    for object in 1...3 { queue.append(moved(Int64(object))) }
    queue.append(moved(4))
    queue.append(moved(5))
    #expect(queue.next() == moved(1))
    // There is room again, but this one must not precede the lost ones.
    queue.append(moved(6))
    #expect(queue.next() == moved(2))
    #expect(queue.next() == moved(3))
    #expect(queue.next() == .missed(count: 3))
    #expect(queue.next() == nil)
    queue.append(moved(7))
    #expect(queue.next() == moved(7))
  }

  @Test mutating func aReaderThatIsAlwaysOneBehindMissesNothing() {
    queue.append(moved(0))
    for object in 1...10_000 {
      queue.append(moved(Int64(object)))
      #expect(queue.next() == moved(Int64(object - 1)))
    }
  }
}
