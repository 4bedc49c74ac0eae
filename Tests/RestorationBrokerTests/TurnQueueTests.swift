// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix
internal import RestorationBroker
internal import RestorationTransport
internal import Testing

@Suite struct TurnQueueTests {
  /// Works on an event loop, in pieces that take longer than what is put off at first.
  private actor Worker {
    private let eventLoop: any EventLoop
    private let meter: LoopMeter
    private let queue: TurnQueue
    private(set) var turns: [Int] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { eventLoop.executor.asUnownedSerialExecutor() }

    init(_ eventLoop: any EventLoop, _ meter: LoopMeter) {
      (self.eventLoop, self.meter) = (eventLoop, meter)
      queue = TurnQueue(of: eventLoop, meter)
    }

    func work(pieces: Int) async {
      for _ in 0..<pieces {
        await queue.next()
        turns.append(meter.turnsEnded)
        let end = NIODeadline.now() + .microseconds(200)
        while NIODeadline.now() < end {}
      }
    }
  }

  @Test func noTwoPiecesOfLongWorkAreInOneTurn() async throws {
    let meter = LoopMeter()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: meter)
    let worker = Worker(group.any(), meter)
    await withTaskGroup(of: Void.self) { operations in
      for _ in 0..<4 { operations.addTask { await worker.work(pieces: 25) } }
    }
    let turns = await worker.turns
    #expect(turns.count == 100 && Set(turns).count == 100)
    try await group.shutdownGracefully()
  }
}
