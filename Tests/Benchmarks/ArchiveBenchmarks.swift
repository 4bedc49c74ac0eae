// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import NIOCore
internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire

extension Benchmark {
  /// A state on its way to the disk.
  static let archives = [
    Benchmark(name: "checksum", rounds: 200) { _ in
      let text = Array(Sample.state(0).utf8)
      return {
        var checksum = Checksum()
        text.withUnsafeBytes { checksum.update($0) }
        return Int(checksum.value)
      }
    },
    Benchmark(name: "digest", rounds: 200) { _ in
      let (record, other) = (record(of: 1, 0), StateDigest(record(of: 1, 1)))
      return { StateDigest(record) == other ? 1 : 0 }
    },
    Benchmark(name: "write-queue", perRound: 50, rounds: 20) { _ in
      let changes = (1...50).map { ArchiveChange.state(record(of: $0, 0)) }
      var queue = WriteQueue()
      queue.opened(at: 0)
      return {
        for change in changes {
          queue.add(change)
          let caller = Caller(client: 1, call: nil)
          queue.await(WriteQueue.Waiting(after: queue.tail, caller: caller, answer: .result(EmptyResult())))
        }
        guard case .commit(let batch, _) = queue.next() else { return 0 }
        _ = batch.take()
        return queue.committed(ArchiveReceipt(sequence: queue.tail, reachableBytes: 0)).count
      }
    },
    commit(rows: 1, rounds: 50),
    commit(rows: 50, rounds: 5),
  ]

  private static func record(of node: NodeID, _ number: Int) -> StateRecord {
    StateRecord(
      node: node,
      context: 1,
      session: 1,
      written: 1_700_000_000_000,
      text: Array(Sample.state(number).utf8)[...]
    )
  }

  /// A transaction, and its share of the file's upkeep.
  private static func commit(rows: Int, rounds: Int) -> Benchmark {
    Benchmark(name: "commit-of-\(rows)", perRound: rows, rounds: rounds) { directory in
      let loop = TestEventLoop()
      let store = try SQLiteArchiveStore(directory: directory, on: loop)
      let lease = loop.outcome { try await store.open("org.example.Bench").lease }
      var last: SequenceNumber = 0
      let apply = { (changes: [ArchiveChange]) in
        let (expecting, batch) = (last, ArchiveBatch(changes))
        let id = ChangeID(high: 1, low: UInt64(expecting))
        last = loop.outcome {
          try await store.apply(batch, lease: lease, expecting: expecting, changeID: id, holding: []).sequence
        }
      }
      apply([.context(1, text: "{}")])
      for node in 1...Int64(rows) {
        apply([.node(NodeRecord(node: node, parent: nil, component: "Window \(node)", kind: .object))])
      }
      let states = (0...1).map { number in (1...rows).map { ArchiveChange.state(record(of: NodeID($0), number)) } }
      return {
        apply(states[Int(last) / rows % 2])
        return Int(last)
      }
    }
  }
}

extension TestEventLoop {
  /// What comes of something that waits for nothing but this loop.
  fileprivate func outcome<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Value {
    let outcome = NIOLoopBoundBox<Result<Value, any Error>?>(nil, eventLoop: self)
    Task(executorPreference: self) {
      do { outcome.value = .success(try await body()) } catch { outcome.value = .failure(error) }
    }
    run()
    guard case .success(let value) = outcome.value else {
      preconditionFailure("the store has failed: \(String(describing: outcome.value))")
    }
    return value
  }
}
