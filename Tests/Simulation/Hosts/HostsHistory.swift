// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import SeededRandom

/// What is done in one simulated run of several hosts whose user goes from one to another.
struct HostsHistory: RandomHistory {
  /// Hosts are numbers.
  enum Step: Sendable {
    /// The user opens the application there, unless it still has it without knowing better.
    case go(Int, byForce: Bool)
    /// Whoever is there leaves it.
    case quit(Int, isCrash: Bool)
    case write(Int, path: Int, count: Int, padding: Int)
    case read(Int, path: Int)
    case save(Int)
    case advance(Int64)
    case slowDisk(Int, Int64)
    case killBrokerAfter(Int, Int)
    case killBroker(Int)
    case cutPower(Int)
    case stopBroker(Int)
    case freeze(Int)
    case thaw(Int, takesInput: Bool)
    case slowNetwork(Int64)
    /// Its calls are refused at once.
    case cutOff(Int)
    case lose(Int, calls: Bool, answers: Bool)
    case mend(Int)
    case loseAnswer(Int)
    case delay(Int, Int64)
    /// Whether another server has what is stored before it is answered.
    case follow(Bool)
    /// Whoever waits for that is told that what became of it is unknown.
    case endWaiting
    case promote(losing: Int)
  }

  static let application = "App"
  static let paths = [Path("A"), Path("B")]

  let seed: UInt64
  let hostCount: Int
  /// A state is acknowledged when the replica has it.
  let waitsForReplica: Bool
  var steps: [Step]

  init(seed: UInt64, count: Int) {
    self.seed = seed
    waitsForReplica = seed % 2 == 0
    hostCount = seed % 3 == 0 ? 3 : 2
    var generator = Generator(seed: seed, hostCount, waitsForReplica: waitsForReplica)
    steps = [.slowNetwork(generator.slowness())] + (0..<hostCount).map { .slowDisk($0, generator.slowness()) }
    steps += [.go(0, byForce: false), .advance(200), .write(0, path: 0, count: 1, padding: 0)]
    steps += (0..<count).map { _ in generator.step() }
  }
}

private struct Generator {
  private var chance: SeededGenerator
  private let hostCount: Int
  private let waitsForReplica: Bool
  /// Some histories have faults of one kind, some of all, some none.
  private lazy var hasFaults = below(4) != 0
  private lazy var faults = (0..<4).filter { _ in below(2) == 0 }
  /// The host that has the archive, mostly.
  private var present = 0
  /// What has to come together, and by chance would not.
  private var scene: [HostsHistory.Step] = []

  init(seed: UInt64, _ hostCount: Int, waitsForReplica: Bool) {
    chance = SeededGenerator(seed: seed &* 0x9e37_79b9 &+ 29)
    (self.hostCount, self.waitsForReplica) = (hostCount, waitsForReplica)
  }

  private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &chance) }
  private mutating func host() -> Int { below(3) == 0 ? below(hostCount) : present }
  private mutating func path() -> Int { below(HostsHistory.paths.count) }

  /// In milliseconds.
  mutating func slowness() -> Int64 { [1, 2, 5, 20, 200][below(5)] }

  mutating func step() -> HostsHistory.Step {
    if !scene.isEmpty { return scene.removeFirst() }
    switch below(100) {
    case 0..<14:
      present = below(hostCount)
      return .go(present, byForce: below(4) == 0)
    case 14..<17: return .quit(host(), isCrash: below(2) == 0)
    case 17..<44: return .write(host(), path: path(), count: 1 + below(3), padding: below(4) == 0 ? below(2_000) : 0)
    case 44..<49: return .read(host(), path: path())
    case 49..<51: return .save(host())
    case 51..<76: return advance()
    default: return hasFaults ? fault() : advance()
    }
  }

  private mutating func advance() -> HostsHistory.Step {
    switch below(10) {
    case 0..<5: .advance(Int64(below(100)))
    case 5..<8: .advance(Int64(below(3_000)))
    default: .advance(Int64(below(20_000)))
    }
  }

  private mutating func fault() -> HostsHistory.Step {
    guard !faults.isEmpty else { return advance() }
    if below(10) == 0 {
      scene = anyScene()
      return scene.removeFirst()
    }
    switch faults[below(faults.count)] {
    case 0: return ending()
    case 1: return below(2) == 0 ? .freeze(host()) : .thaw(host(), takesInput: below(2) == 0)
    case 2: return weather()
    default:
      switch below(6) {
      case 0..<2: return .follow(false)
      case 2: return .follow(true)
      case 3: return .endWaiting
      // What is acknowledged when the replica has it survives only what it has promised to survive.
      default: return .promote(losing: waitsForReplica ? 0 : below(8))
      }
    }
  }

  private mutating func anyScene() -> [HostsHistory.Step] {
    let former = present
    let next = (former + 1 + below(hostCount - 1)) % hostCount
    let write = HostsHistory.Step.write(former, path: path(), count: 1 + below(2), padding: 0)
    switch below(4) {
    // What is repeated is there already, but only at one server.
    case 0:
      return [
        .follow(false), write, .advance(500), .endWaiting, .advance(1_000), .promote(losing: 0),
        .go(next, byForce: false),
      ]
    // The next broker of a host has a lease to send what is left, and another host takes it.
    case 1:
      return [
        .cutOff(former), write, .advance(300), .killBroker(former), .mend(former), .advance(Int64(below(200))),
        .cutOff(former), .go(next, byForce: true), .advance(1_000), .mend(former), .go(former, byForce: false),
        .advance(1_000), write, .advance(100),
      ]
    // A host that hears nothing writes when another one has waited for the end of its lease.
    case 2:
      return [
        .lose(former, calls: true, answers: true), .go(next, byForce: false), .advance(16_000),
        .go(next, byForce: false), .advance(1_000), write, .advance(100), .mend(former),
      ]
    // The answer to a renewal comes late, and nothing else comes.
    default:
      return [
        .delay(former, 5_500), .advance(Int64(below(5_000))), .lose(former, calls: false, answers: true),
        .go(next, byForce: false), .advance(4_500), .mend(former), .advance(1_500),
        .lose(former, calls: true, answers: true), .advance(6_000 + Int64(below(4_000))), .go(next, byForce: false),
        .advance(1_000), write, .advance(100), .mend(former),
      ]
    }
  }

  private mutating func ending() -> HostsHistory.Step {
    switch below(6) {
    case 0..<3: .killBrokerAfter(host(), below(2) == 0 ? below(12) : below(120))
    case 3: .killBroker(host())
    case 4: .cutPower(host())
    default: .stopBroker(host())
    }
  }

  private mutating func weather() -> HostsHistory.Step {
    switch below(8) {
    case 0: .cutOff(host())
    case 1: .lose(host(), calls: true, answers: true)
    case 2: .lose(host(), calls: true, answers: false)
    case 3: .lose(host(), calls: false, answers: true)
    case 4: .loseAnswer(host())
    case 5: .delay(host(), Int64(below(2) == 0 ? below(3_000) : below(40_000)))
    default: .mend(host())
    }
  }
}
