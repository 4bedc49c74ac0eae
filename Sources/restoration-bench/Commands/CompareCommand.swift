// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Measures servers in turns, so that what disturbs the machine for a while disturbs all of them.
struct CompareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Measure the broker and others in turns in one run.",
    discussion: """
      In each turn every server is started with fresh files, and then each work is
      done by one server after the other. The table has medians, the spread of the
      turns, and the ratio of each turn to Redis. What is not installed is left out.

      encode  a durable write: the broker, Redis with appendfsync always, SQLite
              with a transaction for each state, dconf, whose service writes its
              whole database. "redis everysec" and "redis off" promise less.
      notify  a write that is acknowledged before it is on disk: the broker, Redis
              with appendfsync everysec
      decode  a read: the broker, Redis, SQLite
      ping    a round trip: the broker, PING of Redis, GetId of a D-Bus daemon
      round   a save round: the broker asks processes for the states of all
              objects; Redis gets as many SETs from as many clients, all at once

      The C floor is what the socket and the disk cost alone.
      """
  )

  @OptionGroup var options: CommonOptions

  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case encode, notify, decode, ping, round
  }

  @Argument(help: "Works: encode, notify, decode, ping, round.")
  var works: [Kind] = Kind.allCases

  @Option(help: "How often each figure is taken.")
  var turns = 7

  @Option(help: ArgumentHelp("Clients × requests under way of each, with commas between.", valueName: "shapes"))
  var shapes = Shapes([(1, 1), (8, 1), (50, 1), (50, 16)])

  @Option(help: "Processes of a round.")
  var processes = 10

  @Option(help: "Rounds for each figure.")
  var rounds = 5

  func validate() throws {
    for (name, value) in [("processes", processes), ("rounds", rounds)] where !(1...10_000).contains(value) {
      throw ValidationError("--\(name) must be 1 to 10000, not \(value)")
    }
    guard (1...1_000).contains(turns) else { throw ValidationError("--turns must be 1 to 1000, not \(turns)") }
  }

  func run() throws {
    let program = try options.program()
    try options.report("compare") { stage in
      var rows: [Row] = []
      var missing: [String] = []
      for size in options.size.values {
        let all = Self.peers(program, size: size)
        missing = all.compactMap { peer in peer.missing.map { "\(peer.name), because \($0) is not installed" } }
        rows += try compare(all.filter { $0.missing == nil }, size: size, stage)
      }
      return (rows, missing, "Redis")
    }
  }

  private static func peers(_ program: String, size: Int) -> [Peer] {
    [
      .broker(program), .redis("redis always", fsync: "always", [.encode]),
      .redis("redis everysec", fsync: "everysec", [.encode, .notify]),
      .redis("redis off", fsync: nil, [.encode, .decode, .ping]), .sqlite, .dconf, .dbus, .floor(size: size),
    ]
  }

  /// What the ratios of a work are to.
  private static func reference(_ kind: Kind) -> String {
    switch kind {
    case .encode, .round: "redis always"
    case .notify: "redis everysec"
    case .decode, .ping: "redis off"
    }
  }

  private func compare(_ peers: [Peer], size: Int, _ stage: Stage) throws -> [Row] {
    var order: [Subject] = []
    var found: [Subject: [Figures]] = [:]
    for turn in 1...turns {
      let running = try peers.map { (peer: $0, server: try $0.start(stage)) }
      for (peer, server) in running where peer.works.contains(.encode) {
        var subject = Subject("", peer.name)
        (subject.size, subject.objects) = (size, options.objects)
        try server.fill(subject)
      }
      for kind in works {
        for (clients, depth) in shapes(of: kind) {
          for (peer, server) in running {
            var subject = Subject(kind.rawValue, peer.name)
            (subject.clients, subject.depth, subject.objects) = (clients, depth, options.objects)
            if kind != .ping { subject.size = size }
            Output.tell("turn \(turn) of \(turns): \(kind) \(subject.shape), \(peer.name)")
            guard let figures = try measure(kind, subject, peer, server) else { continue }
            if found[subject] == nil { order.append(subject) }
            found[subject, default: []].append(figures)
          }
        }
      }
    }
    Output.tell("")
    return order.map { subject in
      let turns = found[subject] ?? []
      var other = subject
      other.server = Self.reference(Kind(rawValue: subject.work) ?? .ping)
      let ratios = zip(turns, found[other] ?? []).map { $0.rate / $1.rate }
      return Row(subject, turns, ratio: Spread(ratios))
    }
  }

  private func shapes(of kind: Kind) -> [(clients: Int, depth: Int)] {
    kind == .round ? [(min(processes, options.objects), 1)] : shapes.values
  }

  /// `nil` if the peer has nothing like it.
  private func measure(_ kind: Kind, _ subject: Subject, _ peer: Peer, _ server: any RunningPeer) throws -> Figures? {
    guard let work = Work(rawValue: kind.rawValue) else {
      return peer.works.contains(.encode) ? try server.playRounds(subject, times: rounds) : nil
    }
    guard peer.works.contains(work), !peer.isAlone || subject.clients * subject.depth == 1 else { return nil }
    return try server.measure(work, subject, seconds: options.seconds)
  }
}

extension MessageFraming: ExpressibleByArgument {}

/// `8x1,50x16`
struct Shapes: ExpressibleByArgument {
  let values: [(clients: Int, depth: Int)]

  init(_ values: [(clients: Int, depth: Int)]) { self.values = values }

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
    values = parts.compactMap { part in
      let numbers = part.split(separator: "x").compactMap { Int($0) }
      guard numbers.count == 2, (1...10_000).contains(numbers[0]), (1...10_000).contains(numbers[1]) else { return nil }
      return (numbers[0], numbers[1])
    }
    guard !values.isEmpty, values.count == parts.count else { return nil }
  }

  var defaultValueDescription: String { values.map { "\($0.clients)x\($0.depth)" }.joined(separator: ",") }
}
