// SPDX-License-Identifier: Apache-2.0

internal import InMemory
internal import NIOCore
internal import RestorationArchive

extension Benchmark {
  /// Whole calls, from the bytes that come to the bytes of the answer.
  static let services = [
    Benchmark(name: "encode", rounds: 50) { _ in encodes(try inMemory()) },
    Benchmark(name: "durable-encode", rounds: 50) { directory in
      encodes(try BenchmarkedBroker { try SQLiteArchiveStore(directory: directory, on: $0) })
    },
    Benchmark(name: "decode", rounds: 50) { _ in
      let broker = try inMemory()
      broker.call(Sample.registration("Window"))
      broker.call(Sample.encode(window))
      broker.call(Sample.decode(window))
      let decode = ByteBuffer(string: Sample.decode(window))
      return { broker.exchange(decode).readableBytes }
    },
    Benchmark(name: "registration", rounds: 50) { _ in
      let broker = try inMemory()
      broker.call(Sample.registration("Window"))
      var registrations = (1...100).map { ByteBuffer(string: Sample.registration("Window-\($0)")) }.makeIterator()
      return { registrations.next().map { broker.exchange($0).readableBytes } ?? 0 }
    },
    Benchmark(name: "object-of-a-round", perRound: 20, rounds: 5) { _ in
      let broker = try inMemory()
      let objects = (1...20).map { broker.object(of: broker.call(Sample.registration("Window-\($0)"))) }
      let answers = (0...1).map { number in
        let states = objects.map { #"{"object":\#($0),"state":\#(Sample.state(number))}"# }
        return ByteBuffer(string: #","result":{"states":[\#(states.joined(separator: ","))]}}"# + "\n")
      }
      let save = ByteBuffer(string: Sample.call("saveApplicationState"))
      var number = 0
      return {
        number += 1
        let outcome = broker.answer(broker.exchange(save), answers[number % 2])
        return outcome.readableBytes
      }
    },
  ]

  private static let window = #"["Main","Window"]"#

  private static func inMemory() throws -> BenchmarkedBroker {
    try BenchmarkedBroker { try MemoryArchiveStore(on: $0, newIdentifier: { "01234567-89ab-cdef-0123-456789abcdef" }) }
  }

  private static func encodes(_ broker: BenchmarkedBroker) -> () -> Int {
    broker.call(Sample.registration("Window"))
    broker.call(Sample.encode(window))
    let states = (0...1).map { ByteBuffer(string: Sample.encode(window, $0)) }
    var number = 0
    return {
      number += 1
      return broker.exchange(states[number % 2]).readableBytes
    }
  }
}
