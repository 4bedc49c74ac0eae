// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import RestorationWire
internal import SeededRandom

/// What is done in one simulated run. A step says all that it needs, so that others can be left out before it.
struct History {
  enum Step: Sendable {
    case connect(Int, delegate: Bool)
    /// Registers what it had when it was killed, and restores it.
    case comeBack(Int)
    case disconnect(Int)
    case killClient(Int, isCrash: Bool)
    case silence(Int, isSilent: Bool, isLying: Bool)
    case register(Int, Int, takesOver: Bool)
    case unregister(Int, Int, keepsState: Bool)
    case showRows(Int, Int)
    case breakUnit(Int, isBroken: Bool)
    /// Whoever owns it has left it behind.
    case forget(Int, Int)
    case reopen(Int)
    case move(Int, Int)
    case goodbye(Int, String)
    case encode(Int, Int, padding: Int)
    case encodeUnowned(String, Int)
    case decode(Int, Int)
    case read(String, Int)
    case readArchive(String)
    case readGenerations(String)
    case save(Int)
    case restore(Int)
    case discard(String, generations: Bool)
    case rollBack(String)
    case copy(String)
    case spy(String, Int)
    case verify(String)
    case list
    case library(Int, LibraryStep)
    case noise(Int, String)
    case tear(Int, Int)
    case advance(Int64)
    case moveClock(Int64)
    case slowDisk(Int64)
    case fault(SimulatedDisk.Fault)
    case fillDisk(Int)
    case emptyDisk
    case killBrokerAfter(Int)
    case killBroker
    case cutPower
    case stopBroker(handsOver: Bool)
  }

  /// What a process does by the client library.
  enum LibraryStep: Sendable {
    case start(answersCalls: Bool, isPatient: Bool)
    case cancel
    case register(Int, takesOver: Bool)
    case unregister(Int, keepsState: Bool)
    case encode(Int, padding: Int)
    case decode(Int)
    case save
    case restore
    case cut
    /// Its connection breaks, and it comes back later.
    case away(milliseconds: Int64)
    case end(GoodbyeReason)
    case kill(isCrash: Bool)
  }

  static let applications = ["App", "Other"]
  static let paths = [Path("A"), Path("B"), Path("A", "A1"), Path("A", "A2"), Path("A", "A1", "A11")]
  /// The application of each client.
  static let clients = ["App", "App", "App", "Other"]
  static let libraries = ["App", "Other"]

  let seed: UInt64
  var steps: [Step]

  init(seed: UInt64, count: Int = 40) {
    self.seed = seed
    var generator = Generator(chance: SeededGenerator(seed: seed &* 0x9e37_79b9 &+ 17))
    steps = [.slowDisk(generator.slowness())]
    steps += (0..<Self.clients.count).flatMap { generator.beginning($0) }
    if generator.usesLibrary {
      steps += Self.libraries.indices.flatMap { [.library($0, .start(answersCalls: $0 == 0, isPatient: true))] }
    }
    steps += (0..<count).map { _ in generator.step() }
  }
}

private struct Generator {
  var chance: SeededGenerator
  /// Some histories have faults of the disk, some floods, some neither.
  private lazy var hasFaults = below(3) == 0
  private lazy var isHostile = below(4) == 0
  private(set) lazy var usesLibrary = below(2) == 0
  /// How many of four steps are the libraries'.
  private lazy var libraryShare = usesLibrary ? [1, 1, 3][below(3)] : 0

  init(chance: SeededGenerator) { self.chance = chance }

  private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &chance) }
  private mutating func client() -> Int { below(History.clients.count) }
  private mutating func path() -> Int { below(History.paths.count) }
  private mutating func application() -> String { History.applications[below(4) == 0 ? 1 : 0] }

  /// A client comes, and registers something.
  mutating func beginning(_ number: Int) -> [History.Step] {
    guard below(5) != 0 else { return [] }
    return [.connect(number, delegate: number == 0 && below(2) == 0)]
      + (0..<below(3)).map { _ in .register(number, path(), takesOver: false) }
      + (0..<below(3)).map { _ in .encode(number, path(), padding: 0) }
  }

  mutating func step() -> History.Step {
    if libraryShare > 0, below(4) < libraryShare { return .library(below(History.libraries.count), libraryStep()) }
    return switch below(100) {
    case 0..<6: .connect(client(), delegate: below(6) == 0)
    case 6..<10: .comeBack(client())
    case 10..<24: .register(client(), path(), takesOver: below(6) == 0)
    case 24..<46: .encode(client(), path(), padding: below(8) == 0 ? below(20_000) : below(200))
    case 46..<48: .encodeUnowned(application(), path())
    case 48..<49: below(4) == 0 ? .breakUnit(client(), isBroken: below(2) == 0) : .showRows(client(), path())
    case 49..<52: .decode(client(), path())
    case 52..<57: .read(application(), path())
    case 57..<59: .readArchive(application())
    case 59..<61: .readGenerations(application())
    case 61..<66: .save(client())
    case 66..<69: .restore(client())
    case 69..<71: leave()
    case 71..<73: .goodbye(client(), ["closed", "userQuit", "restart", "logout"][below(4)])
    case 73..<75: .disconnect(client())
    case 75..<78: .killClient(client(), isCrash: below(4) != 0)
    case 78..<79: below(2) == 0 ? .discard(application(), generations: below(3) == 0) : .rollBack(application())
    case 79..<80: tool()
    case 80..<92: advance()
    case 92..<96: trouble()
    default: ending()
    }
  }

  private mutating func libraryStep() -> History.LibraryStep {
    switch below(40) {
    case 0..<3: .start(answersCalls: below(2) == 0, isPatient: below(3) != 0)
    case 3..<12: .register(path(), takesOver: below(6) == 0)
    case 12..<26: .encode(path(), padding: below(8) == 0 ? below(20_000) : below(200))
    case 26..<28: .decode(path())
    case 28..<30: .save
    case 30..<31: .restore
    case 31..<33: .unregister(path(), keepsState: below(2) == 0)
    case 33: .cancel
    case 34..<36: .cut
    case 36: .away(milliseconds: [0, 50, 5_000, 60_000][below(4)])
    case 37: .end([.closed, .userQuit, .restart, .logout][below(4)])
    default: .kill(isCrash: below(2) == 0)
    }
  }

  /// How long a job waits for the disk at most, in milliseconds.
  mutating func slowness() -> Int64 { [0, 2, 2, 20, 300][below(5)] }

  private mutating func leave() -> History.Step {
    switch below(6) {
    case 0..<2: .unregister(client(), path(), keepsState: below(2) == 0)
    case 2: .forget(client(), path())
    case 3: .reopen(client())
    default: .move(client(), below(20))
    }
  }

  private mutating func tool() -> History.Step {
    switch below(5) {
    case 0..<2: .verify(application())
    case 2: .list
    case 3: .copy(application())
    default: .spy(application(), path())
    }
  }

  private mutating func advance() -> History.Step {
    switch below(10) {
    case 0..<5: .advance(Int64(below(10)))
    case 5..<8: .advance(Int64(below(1_000)))
    case 8: .advance(Int64(below(100_000)))
    default: .slowDisk(slowness())
    }
  }

  private mutating func trouble() -> History.Step {
    if isHostile {
      switch below(4) {
      case 0: return .noise(client(), ["\u{1}\n", "[]\n", "{\"a\":\n", "[1,2\n", "{}\n"][below(5)])
      case 1: return .tear(client(), path())
      case 2: return .silence(client(), isSilent: below(2) == 0, isLying: below(2) == 0)
      default: return .moveClock(Int64(below(2)) * 86_400_000 * 40 - 3_600_000)
      }
    }
    guard hasFaults else { return .advance(Int64(below(50))) }
    switch below(5) {
    case 0: return .fillDisk(below(200_000))
    case 1: return .emptyDisk
    default:
      let call: SimulatedDisk.Call = [.read, .write, .sync, .other][below(4)]
      let code: Int32 = call == .write && below(2) == 0 ? 28 : 5
      return .fault(SimulatedDisk.Fault(call: call, code: code, after: below(12), count: 1 + below(3)))
    }
  }

  private mutating func ending() -> History.Step {
    switch below(8) {
    case 0..<3: .killBrokerAfter(below(2) == 0 ? below(12) : below(60))
    case 3: .killBroker
    case 4..<7: .cutPower
    default: .stopBroker(handsOver: below(3) != 0)
    }
  }
}
