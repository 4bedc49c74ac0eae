// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Something that can do a part of the broker's work, to be compared with it.
struct Peer {
  let name: String
  /// What has to be installed.
  var programs: [String] = []
  let works: Set<Work>
  /// Whether it has only one client.
  var isAlone = false
  let start: (Stage) throws -> any RunningPeer

  /// What is not installed of it.
  var missing: String? { programs.first { Self.find($0) == nil } }

  /// Where a program is: a path as it is, a name beside this program, or else by `PATH`.
  static func find(_ name: String) -> String? {
    if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
    var own = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let count = max(0, readlink("/proc/self/exe", &own, own.count - 1))
    let path = String(decoding: own.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let beside = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    let folders = [beside] + (getenv("PATH").map { String(cString: $0) } ?? "").split(separator: ":").map(String.init)
    return folders.lazy.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }
}

/// A peer with fresh files.
protocol RunningPeer {
  /// Puts as many objects there as the subject has.
  func fill(_ subject: Subject) throws

  /// Does the work for some seconds.
  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures

  /// Stores new states of all objects so many times, from as many clients as the subject has, and waits until all of
  /// them are durable.
  ///
  /// - Returns: `nil` if it has nothing like a save round.
  func playRounds(_ subject: Subject, times: Int) throws -> Figures?
}

extension RunningPeer {
  func playRounds(_ subject: Subject, times: Int) throws -> Figures? { nil }
}

/// A peer that is asked over a socket.
struct SocketPeer: RunningPeer {
  let server: Server
  /// The load of one client for a work.
  let load: (Work, Subject) -> Load

  func fill(_ subject: Subject) throws { try load(.encode, subject).fill(subject) }

  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures {
    var load = load(work, subject)
    load.take(subject)
    (load.seconds, load.warmUp, load.servers) = (seconds, seconds / 5, [server.process])
    return try load.run()
  }

  /// Each client sends all of its states at once.
  func playRounds(_ subject: Subject, times: Int) throws -> Figures? {
    var load = load(.encode, subject)
    (load.clients, load.keys, load.requests) = (subject.clients, subject.objects, subject.objects)
    load.depth = (subject.objects + subject.clients - 1) / subject.clients
    load.servers = [server.process]
    var (own, theirs) = (UInt64(0), UInt64(0))
    var figures = try Figures(times) { _ in
      let round = try load.run()
      if let failure = round.failure { throw Failure("\(subject.server) refused a state: \(failure)") }
      own += round.generatorCPU
      theirs += round.serverCPU ?? 0
      return UInt64(round.seconds * 1e9)
    }
    (figures.generatorCPU, figures.serverCPU) = (own, theirs)
    return figures
  }
}

// MARK: Those there are

extension Peer {
  static func broker(_ program: String) -> Peer {
    Peer(name: "broker", programs: [program], works: Set(Work.allCases)) { stage in
      BrokerUnderLoad(try Server.broker(program, stage, in: try stage.folder("broker")))
    }
  }

  /// - Parameter fsync: when its log is made durable; `nil` if it has none.
  static func redis(_ name: String, fsync: String?, _ works: Set<Work>) -> Peer {
    Peer(name: name, programs: ["redis-server"], works: works) { stage in
      let folder = try stage.folder("redis")
      let log = fsync.map { ["--appendonly", "yes", "--appendfsync", $0] } ?? ["--appendonly", "no"]
      let server = try Server(
        stage,
        in: folder,
        socket: "\(folder).sock",
        ["redis-server", "--port", "0", "--unixsocket", "\(folder).sock", "--dir", folder, "--save", ""] + log
      )
      return SocketPeer(server: server) { work, subject in
        Load(
          socket: server.socket,
          request: Requests.redis(work, size: subject.size),
          replies: Requests.redisReplies(work)
        )
      }
    }
  }

  static var dbus: Peer {
    Peer(name: "D-Bus", programs: ["dbus-daemon"], works: [.ping]) { stage in
      let server = try bus(stage)
      return SocketPeer(server: server) { _, _ in
        Load(socket: server.socket, opening: DBusMessage.opening, request: DBusMessage.ping, replies: .dbus)
      }
    }
  }

  /// Its service writes the whole database of the user for each change, so it is asked by one client.
  static var dconf: Peer {
    Peer(name: "dconf", programs: ["dbus-daemon", "/usr/libexec/dconf-service"], works: [.encode], isAlone: true) {
      stage in
      DconfPeer(bus: try bus(stage))
    }
  }

  static var sqlite: Peer {
    Peer(name: "SQLite in process", works: [.encode, .decode], isAlone: true) { stage in
      try SQLitePeer("\(try stage.folder("sqlite"))/states.db")
    }
  }

  /// - Parameter size: bytes of a state, which a decode answers with.
  static func floor(size: Int) -> Peer {
    let name = "restoration-bench-floor"
    return Peer(name: "C floor", programs: [name], works: Set(Work.allCases).subtracting([.notify])) { stage in
      let folder = try stage.folder("floor")
      let program = find(name) ?? name
      // One that answers as a decode does, and one that keeps what it is told.
      let plain = try Server(stage, in: folder, socket: "\(folder).plain", [program, "\(folder).plain", "\(size)"])
      let keeping = try Server(
        stage,
        in: folder,
        socket: "\(folder).keeping",
        [program, "\(folder).keeping", "0", "\(folder)/log"]
      )
      return FloorPeer(
        plain: SocketPeer(server: plain) { Load(socket: plain.socket, $0, $1) },
        keeping: SocketPeer(server: keeping) { Load(socket: keeping.socket, $0, $1) }
      )
    }
  }

  private static func bus(_ stage: Stage) throws -> Server {
    let folder = try stage.folder("bus")
    let socket = "\(folder).sock"
    try Output.write(
      """
      <busconfig><type>session</type><listen>unix:path=\(socket)</listen><auth>EXTERNAL</auth>
      <standard_session_servicedirs/><policy context="default">
      <allow send_destination="*"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
      """,
      toFile: "\(folder)/bus.conf"
    )
    return try Server(
      stage,
      in: folder,
      socket: socket,
      ["dbus-daemon", "--nofork", "--nopidfile", "--config-file=\(folder)/bus.conf"]
    )
  }
}

extension Load {
  fileprivate init(socket: String, _ work: Work, _ subject: Subject) {
    self.init(socket: socket, request: Requests.broker(work, size: subject.size), replies: .lines(1))
  }
}

private struct FloorPeer: RunningPeer {
  let plain: SocketPeer
  let keeping: SocketPeer

  func fill(_ subject: Subject) {}

  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures {
    try (work == .encode ? keeping : plain).measure(work, subject, seconds: seconds)
  }

  func playRounds(_ subject: Subject, times: Int) throws -> Figures? { try keeping.playRounds(subject, times: times) }
}

private struct DconfPeer: RunningPeer {
  private static let key = "/bench/window-\(MessageTemplate.key)"

  let bus: Server

  func fill(_ subject: Subject) throws {
    let key = MessageTemplate(Self.key)
    let keys = (0..<subject.objects).map { String(decoding: key.message(key: $0), as: UTF8.self) }
    var load = load(keys, subject)
    load.requests = 1
    let figures = try load.run()
    if let failure = figures.failure { throw Failure("dconf refused a state: \(failure)") }
  }

  /// What the service uses is not told: the bus starts it.
  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures {
    var load = load([Self.key], subject)
    (load.keys, load.seconds, load.warmUp) = (max(1, subject.objects), seconds, seconds / 5)
    return try load.run()
  }

  private func load(_ keys: [String], _ subject: Subject) -> Load {
    Load(
      socket: bus.socket,
      opening: DBusMessage.opening,
      request: DBusMessage.dconf(keys, SampleState.text(bytes: subject.size)),
      replies: .dbus
    )
  }
}
