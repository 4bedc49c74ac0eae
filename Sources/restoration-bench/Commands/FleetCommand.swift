// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// Measures archives that follow their user, with a PostgreSQL server and a standby of their own.
struct FleetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet",
    abstract: "Measure what a replica costs, and how soon another host continues.",
    discussion: """
      disk      durable writes of a broker that ships them to a gateway, beside one
                without a replica, in turns
      replica   writes that are answered when the database and its standby have
                them, each client in an archive of its own, beside pgbench, which
                runs the transaction of an append from as many clients
      handover  the user goes from host to host: from the call of initialize there
                until what was written last on the other host is read

      PostgreSQL, which has to be installed, runs with fsync and waits for the
      standby. All servers share a processor, so that "CPU us", which is the
      broker's alone, says more than rates do.
      """
  )

  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case disk, replica, handover
  }

  @OptionGroup var options: CommonOptions

  @Argument(help: "Works: disk, replica, handover.")
  var works: [Kind] = Kind.allCases

  @Option(help: "How often each figure is taken.")
  var turns = 5

  @Option(help: "Clients of disk and replica.")
  var clients = Numbers([1, 50])

  @Option(help: "Journeys of a handover for each figure.")
  var journeys = 20

  @Option(help: ArgumentHelp("The program of the gateway.", valueName: "path"))
  var gateway = "restoration-gateway"

  func validate() throws {
    for (name, value) in [("turns", turns), ("journeys", journeys)] where !(1...1_000).contains(value) {
      throw ValidationError("--\(name) must be 1 to 1000, not \(value)")
    }
  }

  func run() throws {
    let program = try options.program()
    guard let gateway = Peer.find(gateway) else {
      throw Failure("there is no program \(gateway); build it, or name it with --gateway")
    }
    try options.report("fleet") { stage in
      let database = try Database(stage, gateway: gateway)
      let host = { (name: String, acknowledge: String) in
        try FleetHost(stage, name, database, broker: program, gateway: gateway, acknowledge: acknowledge)
      }
      var rows: [Row] = []
      for size in options.size.values {
        for work in works {
          switch work {
          case .disk: rows += try disk(size, try options.ownBroker(stage), try host("a", "disk"))
          case .replica: rows += try replica(size, try host("b", "replica"), database)
          case .handover: rows += try handover(size, try [host("c", "disk"), host("d", "disk")])
          }
        }
      }
      Output.tell("")
      return (rows, [], "its peer")
    }
  }

  private func disk(_ size: Int, _ plain: BrokerUnderLoad, _ shipping: FleetHost) throws -> [Row] {
    var rows: [Row] = []
    for clients in clients.values {
      var subject = Subject("encode", "no replica")
      (subject.clients, subject.size, subject.objects) = (clients, size, options.objects)
      let (reference, other) = try inTurns(
        subject,
        "disk",
        { try plain.measure(.encode, $0, seconds: options.seconds) },
        { try shipping.broker.measure(.encode, $0, seconds: options.seconds) }
      )
      rows += [reference, other]
    }
    return rows
  }

  private func replica(_ size: Int, _ host: FleetHost, _ database: Database) throws -> [Row] {
    var rows: [Row] = []
    var broker = host.broker
    broker.target.application = "\(Requests.application).a\(MessageTemplate.key)"
    broker.target.path = ["window"]
    for clients in clients.values {
      var subject = Subject("encode", "pgbench")
      (subject.clients, subject.size, subject.objects) = (clients, size, clients)
      // What an encode of so many bytes is in a batch.
      let (reference, other) = try inTurns(
        subject,
        "replica",
        { try database.append(clients: $0.clients, size: size + 86, seconds: options.seconds) },
        { [broker] in try broker.measure(.encode, $0, seconds: options.seconds) }
      )
      rows += [reference, other]
    }
    return rows
  }

  private func inTurns(
    _ subject: Subject,
    _ server: String,
    _ reference: (Subject) throws -> Figures,
    _ other: (Subject) throws -> Figures
  ) throws -> (Row, Row) {
    var second = subject
    second.server = server
    var figures: [(Figures, Figures)] = []
    for turn in 1...turns {
      Output.tell("turn \(turn) of \(turns): \(server), \(subject.clients) clients")
      figures.append((try reference(subject), try other(second)))
    }
    let ratios = figures.map { $0.1.rate / $0.0.rate }
    return (Row(subject, figures.map(\.0)), Row(second, figures.map(\.1), ratio: Spread(ratios)))
  }

  private func handover(_ size: Int, _ hosts: [FleetHost]) throws -> [Row] {
    var subject = Subject("handover", "host to host")
    (subject.size, subject.objects) = (size, options.objects)
    var first = hosts[0].broker
    first.target = Traveller.target
    try first.fill(subject)
    var traveller = Traveller(try LineConnection(hosts[0].broker.socket))
    try traveller.arrive(objects: options.objects)
    var place = 0
    let figures = try (1...turns).map { turn in
      Output.tell("turn \(turn) of \(turns): handover")
      return try Figures(journeys) { _ in
        place = 1 - place
        let next = try LineConnection(hosts[place].broker.socket)
        return try traveller.go(to: next, size: size, objects: options.objects)
      }
    }
    return [Row(subject, figures)]
  }
}

/// A user whose session is on one host after the other.
private struct Traveller {
  /// What other works have written is not to travel.
  static let target = {
    var target = Target()
    target.application = "\(Requests.application).Traveller"
    return target
  }()

  private var connection: LineConnection
  private var journeys = 0

  init(_ connection: LineConnection) { self.connection = connection }

  /// A session begins, and what was written last is read.
  func arrive(objects: Int) throws {
    try connection.call("initialize", #"{"application":"\#(Self.target.application)"}"#)
    try connection.socket.send(Requests.broker(.decode, size: 0, of: Self.target).message(key: journeys % objects))
    let answer = try connection.answer()
    guard journeys == 0 || answer.contains(#""turn":\#(MessageTemplate.firstID + journeys),"#) else {
      throw Failure("journey \(journeys) arrived without what was written last: \(answer.prefix(200))")
    }
  }

  /// Writes something, and continues elsewhere.
  ///
  /// - Returns: Nanoseconds from the first call there.
  mutating func go(to next: LineConnection, size: Int, objects: Int) throws -> UInt64 {
    journeys += 1
    let id = MessageTemplate.firstID + journeys
    let encode = Requests.broker(.encode, size: size, of: Self.target)
    try connection.socket.send(encode.message(id: id, key: journeys % objects))
    _ = try connection.answer()
    let former = connection
    defer { withExtendedLifetime(former) {} }
    connection = next
    let start = Clock.now
    try arrive(objects: objects)
    return Clock.now - start
  }
}
