// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Measures one broker.
struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Measure a broker.",
    discussion: """
      ping     a call that does nothing
      encode   a state that is on disk when it is answered
      notify   a state as a notification, on disk within 250 ms, and a ping behind it
      decode   a state that was stored before
      round    a save round: processes are asked for the states of all objects
      restore  a restoration of all objects by processes that have just
               registered them
      start    from the start of the program to its first answer: without files,
               with an archive beside, and to the first decode from that

      A broker of its own has a private directory, and limits that refuse nothing
      of this. start needs one. At another broker (--socket) it uses the
      applications org.example.Benchmark and org.example.Benchmark.Rounds, which
      are forgotten afterwards.
      """
  )

  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case ping, encode, notify, decode, round, restore, start

    var needsOwnBroker: Bool { self == .start }
  }

  @OptionGroup var options: CommonOptions

  @Argument(help: "Works, as listed above; all of them if none is named.")
  var works: [Kind] = []

  @Option(help: ArgumentHelp("Measure the broker that listens there.", valueName: "path"))
  var socket: String?

  @Option(help: "Clients.")
  var clients = Numbers([1, 8, 50])

  @Option(help: "Requests of a client that are under way.")
  var depth = Numbers([1])

  @Option(help: "How messages are framed: lines, headers (Content-Length), http.", transform: Self.framings)
  var framing: [MessageFraming] = [.lines]

  @Option(help: "So many requests for each figure instead of --seconds.")
  var requests: Int?

  @Option(help: "Processes of a round or a restoration.")
  var processes = 10

  @Option(help: "Rounds, restorations and starts for each figure.")
  var rounds = 15

  func validate() throws {
    for (name, value) in [("requests", requests ?? 1), ("processes", processes), ("rounds", rounds)]
    where !(1...1_000_000_000).contains(value) {
      throw ValidationError("--\(name) must be 1 or more, not \(value)")
    }
    if socket != nil, let work = works.first(where: \.needsOwnBroker) {
      throw ValidationError("\(work) needs a broker of its own; leave out --socket")
    }
  }

  private static func framings(_ text: String) throws -> [MessageFraming] {
    try text.split(separator: ",", omittingEmptySubsequences: false).map { word in
      guard let framing = MessageFraming(rawValue: String(word)) else {
        throw ValidationError("--framing must be lines, headers or http, not \(word)")
      }
      return framing
    }
  }

  private var chosen: [Kind] { works.isEmpty ? Kind.allCases.filter { socket == nil || !$0.needsOwnBroker } : works }

  func run() throws {
    try options.report("run") { stage in
      let broker = try socket.map { try BrokerUnderLoad($0) } ?? options.ownBroker(stage)
      var rows: [Row] = []
      for size in options.size.values {
        for kind in chosen {
          Output.tell("\(kind), \(size) bytes")
          rows += try measure(kind, size: size, broker, stage)
        }
      }
      if socket != nil { broker.forget() }
      Output.tell("")
      return (rows, [], nil)
    }
  }

  private func subject(_ work: String, size: Int, objects: Int? = nil) -> Subject {
    var subject = Subject(work, "broker")
    (subject.size, subject.objects) = (size, objects ?? options.objects)
    return subject
  }

  private func measure(_ kind: Kind, size: Int, _ broker: BrokerUnderLoad, _ stage: Stage) throws -> [Row] {
    switch kind {
    case .ping: return try single(.ping, size: size, broker)
    case .encode: return try single(.encode, size: size, broker)
    case .notify: return try single(.notify, size: size, broker)
    case .decode:
      try broker.fill(subject("decode", size: size))
      return try single(.decode, size: size, broker)
    case .round, .restore:
      var subject = subject(kind.rawValue, size: size)
      subject.clients = min(processes, options.objects)
      let figures =
        try kind == .restore
        ? broker.playRestorations(subject, times: rounds) : broker.playRounds(subject, times: rounds)
      return figures.map { [Row(subject, [$0])] } ?? []
    case .start: return try starts(size: size, stage)
    }
  }

  private func single(_ work: Work, size: Int, _ broker: BrokerUnderLoad) throws -> [Row] {
    var rows: [Row] = []
    for framing in framing {
      for clients in clients.values {
        for depth in depth.values {
          var subject = subject(work.rawValue, size: work.hasState ? size : 0)
          (subject.clients, subject.depth, subject.framing) = (clients, depth, framing.rawValue)
          let figures = try broker.measure(work, subject, framing, seconds: options.seconds, requests: requests)
          rows.append(Row(subject, [figures]))
        }
      }
    }
    return rows
  }

  private func starts(size: Int, _ stage: Stage) throws -> [Row] {
    let program = try options.program()
    let folder = try stage.folder("start")
    let time = { (work: Work, key: Int) in
      let start = Clock.now
      let broker = BrokerUnderLoad(try Server.broker(program, stage, in: folder))
      try broker.once(work, key: key)
      return Clock.now - start
    }
    let empty = try Figures(rounds) { _ in try time(.ping, 0) }
    let full = subject("start", size: size)
    try BrokerUnderLoad(Server.broker(program, stage, in: folder)).fill(full)
    let beside = try Figures(rounds) { _ in try time(.ping, 0) }
    let decode = try Figures(rounds) { try time(.decode, $0 % options.objects) }
    return [
      Row(subject("start", size: 0, objects: 0), [empty]), Row(full, [beside]),
      Row(subject("start and decode", size: size), [decode]),
    ]
  }
}

extension Figures {
  /// Times something several times, in nanoseconds.
  init(_ count: Int, _ body: (Int) throws -> UInt64) rethrows {
    self.init()
    var sum: UInt64 = 0
    for index in 0..<count {
      let time = try body(index)
      latency.note(time)
      sum += time
    }
    seconds = Double(sum) / 1e9
  }
}
