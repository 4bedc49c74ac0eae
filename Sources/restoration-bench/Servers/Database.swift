// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A PostgreSQL server with the gateway's schema, and a standby that every commit waits for. Both end with this value.
///
/// They run as the user `postgres` if root measures, whom PostgreSQL refuses.
final class Database {
  /// For libpq, as the gateway.
  var conninfo: String { "host=\(folder) user=bench dbname=postgres" }
  let process: Int32

  private let stage: Stage
  /// Of the sockets, too.
  private let folder: String
  private let standby: Int32
  private let programs: String

  /// Where the programs of the newest version are; `nil` if none is installed.
  static let programs: String? = {
    let path = "/usr/lib/postgresql"
    guard let folder = opendir(path) else { return nil }
    defer { closedir(folder) }
    var versions: [Int] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if let version = Int(name) { versions.append(version) }
    }
    return versions.max().map { "\(path)/\($0)/bin" }
  }()

  private static let user = geteuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []

  /// - Parameter gateway: the program, which knows the schema.
  init(_ stage: Stage, gateway: String) throws {
    guard let programs = Self.programs else { throw Failure("PostgreSQL is not installed") }
    (self.stage, self.programs) = (stage, programs)
    folder = try stage.folder("database")
    if !Self.user.isEmpty {
      // Its user has to get there.
      chmod(stage.directory, 0o711)
      try stage.run(["chown", "postgres:postgres", folder])
    }
    let (first, second) = ("\(folder)/first", "\(folder)/second")
    try stage.run(
      Self.user + [
        "\(programs)/initdb", "--pgdata=\(first)", "--username=admin", "--auth=trust", "--encoding=UTF8",
        "--locale=C",
      ]
    )
    process = try Self.start(stage, first, port: 5_432, programs)
    try stage.run(
      Self.user + [
        "\(programs)/pg_basebackup", "--pgdata=\(second)", "--host=\(folder)", "--username=admin",
        "--write-recovery-conf", "--checkpoint=fast",
      ]
    )
    standby = try Self.start(stage, second, port: 5_433, programs)
    try query(try stage.run([gateway, "schema"]))
    let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? ""
    try query("SELECT restoration.admit('bench', 'bench'), restoration.admit('bench', '\(user)')")
    try query("ALTER ROLE bench CONNECTION LIMIT -1")
    try query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf()")
    let end = Clock.now + 20_000_000_000
    while try query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") != "1" {
      guard Clock.now < end else { throw Failure("the standby does not follow") }
    }
  }

  deinit { for process in [standby, process] { stage.end(process, SIGINT) } }

  private static func start(_ stage: Stage, _ directory: String, port: Int, _ programs: String) throws -> Int32 {
    let process = try stage.spawn(
      user + ["\(programs)/postgres", "-D", directory, "-k", "..", "-p", "\(port)", "-c", "listen_addresses="],
      environment: [],
      log: "\(directory).log"
    )
    let end = Clock.now + 20_000_000_000
    let ready = ["\(programs)/pg_isready", "--quiet", "--host=\(directory)/..", "--port=\(port)"]
    while (try? stage.run(ready)) == nil {
      guard !stage.hasEnded(process), Clock.now < end else {
        let log = (try? Output.text(ofFile: "\(directory).log")) ?? ""
        throw Failure("PostgreSQL does not start: \(log.suffix(300))")
      }
      usleep(10_000)
    }
    return process
  }

  /// Runs statements as the administrator; returns what they answer.
  @discardableResult
  func query(_ statements: String) throws -> String {
    let file = "\(try stage.folder("query"))/statements.sql"
    try Output.write(statements, toFile: file)
    let options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "admin", "-d", "postgres"]
    let text = try stage.run(["\(programs)/psql"] + options + ["-f", file])
    return text.split(separator: "\n").joined(separator: "\n")
  }

  /// Runs the transaction of an append from PostgreSQL's own load generator: each client has an archive.
  ///
  /// - Parameter size: Bytes of a batch.
  func append(clients: Int, size: Int, seconds: Double) throws -> Figures {
    let lease = "00000000-0000-0000-0000-000000000001"
    let first = try query(
      """
      WITH added AS (
        INSERT INTO restoration.archive (owner, application, history, lease)
        SELECT 'bench', gen_random_uuid()::text, '', '\(lease)' FROM generate_series(1, \(clients))
        RETURNING archive)
      SELECT min(archive) FROM added
      """
    )
    let place = try stage.folder("pgbench")
    let body = String(repeating: "5a", count: size)
    try Output.write(
      #"""
      \set upto :after + 1
      SELECT outcome FROM restoration.append_1('bench', \#(first) + :client_id, '\#(lease)', :after, :upto,
        gen_random_uuid(), '', '\x\#(body)', false);
      \set after :upto

      """#,
      toFile: "\(place)/append.sql"
    )
    let whole = max(1, Int(seconds.rounded()))
    let log = "\(place)/transactions"
    try stage.run(
      [
        "\(programs)/pgbench", "--no-vacuum", "--protocol=extended", "--client=\(clients)", "--time=\(whole)",
        "--define=after=0", "--file=\(place)/append.sql", "--log", "--log-prefix=\(log)", "--host=\(folder)",
        "--username=bench", "postgres",
      ]
    )
    var figures = Figures()
    figures.seconds = Double(whole)
    // A line: the client, the transaction's number, its microseconds, and more.
    for line in try stage.run(["sh", "-c", #"cat "$0".*"#, log]).split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count > 2, let time = UInt64(words[2]) { figures.latency.note(1_000 * time) }
    }
    let stored = try query("SELECT count(*) FROM restoration.batch WHERE archive >= \(first)")
    guard Int(stored) == figures.requests else {
      throw Failure("pgbench tells \(figures.requests) appends, and the database has \(stored)")
    }
    return figures
  }
}
