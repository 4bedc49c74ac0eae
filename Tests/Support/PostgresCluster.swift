// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A PostgreSQL server with a directory of its own, which is removed with it; never one of the machine.
///
/// It runs as the user `postgres` if the tests run as root, whom PostgreSQL refuses.
package final class PostgresCluster: Sendable {
  /// Of the newest version that is installed.
  private static let programs: String? = {
    let versions = Files.list("/usr/lib/postgresql").compactMap { Int($0) }.sorted()
    return versions.last.map { "/usr/lib/postgresql/\($0)/bin" }
  }()

  package static let isUsable = Environment.isCI || programs != nil

  private static let user =
    geteuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []

  /// What all clusters of the process share: a place for them, and those that they are copied from.
  private final class Site: Sendable {
    let place: String
    let count = Atomic<Int>(0)
    /// By what was applied to an empty one, which takes longer than to copy it.
    private let templates = Mutex<[String: String]>([:])

    init() throws {
      place = try ScratchDirectory().path
      // It ends and removes what is left when this process has ended, however that happens.
      let script = """
        trap '' HUP INT TERM; read line
        for file in "$0"/*/postmaster.pid; do
          [ -f "$file" ] && pid=$(head -n 1 "$file") && kill -QUIT "$pid" && tail --pid="$pid" -s 0.05 -f /dev/null
        done
        rm -rf "$0"
        """
      try PostgresCluster.keeper.withLock { [place] in $0 = try ChildProcess(["sh", "-c", script, place]) }
      if !PostgresCluster.user.isEmpty { try PostgresCluster.run(["chown", "postgres:postgres", place], as: []) }
      try PostgresCluster.make("\(place)/template")
      // Only what a test does is in the log of transactions, in order, and nothing of it is in other files.
      let settings = """
        listen_addresses = ''
        dynamic_shared_memory_type = mmap
        shared_buffers = 8MB
        fsync = off
        autovacuum = off
        bgwriter_lru_maxpages = 0
        checkpoint_timeout = 1h
        max_wal_size = 1GB
        wal_keep_size = 64MB
        max_logical_replication_workers = 0
        restore_command = 'false'
        log_min_messages = warning

        """
      let file = "\(place)/template/postgresql.conf"
      try Files.write(Array((try Files.text(file) + settings).utf8), to: file)
      let rights = "\(place)/template/pg_hba.conf"
      try Files.write(Array((try Files.text(rights) + "host all all 10.9.0.0/16 trust\n").utf8), to: rights)
    }

    func template(with schema: String) throws -> String {
      try templates.withLock { templates in
        if let path = templates[schema] { return path }
        let path = "\(place)/template-\(templates.count)"
        try PostgresCluster.copy("\(place)/template", to: path)
        try PostgresCluster.launch(path, at: nil)
        try PostgresCluster.query(schema, at: path)
        try PostgresCluster.run([try PostgresCluster.program("pg_ctl"), "-D", path, "-m", "fast", "-w", "stop"])
        templates[schema] = path
        return path
      }
    }
  }

  private static let keeper = Mutex<ChildProcess?>(nil)
  private static let site = Result { try Site() }

  /// Where a server can be reached besides its socket.
  package struct Place: Sendable {
    package let address: String
    /// Begins the commands that run there.
    fileprivate let prefix: [String]

    package init(_ address: String, in network: NetworkNamespace) { (self.address, prefix) = (address, network.prefix) }
  }

  /// Its data, and its socket.
  package let directory: String
  package let place: Place?
  /// What it was copied from, and where its log of transactions went on.
  private let (template, start): (String, String)
  /// Another program that has what is stored, as a standby would.
  private let receiver = Mutex<ChildProcess?>(nil)

  /// Starts one, and applies this text.
  ///
  /// - Parameter isCovered: Whether there is a program that commits wait for.
  package init(_ schema: String, isCovered: Bool = false, at place: Place? = nil) throws {
    let site = try Self.site.get()
    directory = "\(site.place)/\(site.count.wrappingAdd(1, ordering: .relaxed).newValue)"
    self.place = place
    template = try site.template(with: schema)
    try Self.copy(template, to: directory)
    try Self.launch(directory, at: place)
    start = try Self.query("SELECT pg_current_wal_lsn()", at: directory)
    if isCovered { try cover() }
  }

  /// Starts a standby that has what another server has, and follows it.
  package init(following leader: PostgresCluster, at place: Place? = nil) throws {
    let site = try Self.site.get()
    self.place = place
    directory = "\(site.place)/\(site.count.wrappingAdd(1, ordering: .relaxed).newValue)"
    (template, start) = (leader.template, leader.start)
    try Self.run([
      try Self.program("pg_basebackup"), "-D", directory, "-X", "stream", "-c", "fast", "--no-sync",
      "-d", "host=\(leader.directory) user=admin",
    ])
    try Self.set("unix_socket_directories", directory, in: directory)
    try Self.set("primary_conninfo", way(to: leader), in: directory)
    try Self.set("wal_retrieve_retry_interval", "50ms", in: directory)
    try Self.run(["touch", "\(directory)/standby.signal"])
    Files.remove("\(directory)/.s.PGSQL.5432.lock")
    try Self.launch(directory, at: place)
    try waitUntil(isFollowing: true)
  }

  deinit {
    receiver.withLock { $0 = nil }
    try? stop()
    // The keeper finds a server that goes on by this file.
    guard !Files.exists("\(directory)/postmaster.pid") else { return }
    for path in [directory, "\(directory).former"] { Files.removeTree(path) }
  }

  /// Lets a host speak for a user.
  package func admit(_ user: String = Environment.user, as host: String = "host") throws {
    try query("SELECT restoration.admit('\(host)', '\(user)')")
  }

  /// For libpq, as a host.
  package func conninfo(user: String = "host", options: String = "") -> String {
    "host=\(directory) user=\(user) dbname=postgres options='\(options)'"
  }

  /// Runs statements as the database's administrator or as another role; returns what they answer.
  @discardableResult
  package func query(_ statements: String, as role: String = "admin") throws -> String {
    try Self.query(statements, at: directory, as: role)
  }

  /// A session in which a transaction can be left open; each line that it prints is one column.
  package func session() throws -> ChildProcess {
    try ChildProcess([try Self.program("psql")] + Self.options(directory), errors: "\(directory)/session")
  }

  /// Returns when a call waits for what a session has locked; its process is the number of the server's one.
  package func waitUntil(aCallWaitsFor process: String) throws {
    try Wait.until("a call waits for a lock of process \(process)") {
      try query("SELECT count(*) FROM pg_stat_activity WHERE \(process) = ANY (pg_blocking_pids(pid))") != "0"
    }
  }

  /// Returns when a commit waits for the other program.
  package func waitForCommit() throws {
    try Wait.until("a commit waits for a standby") {
      try query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "0"
    }
  }

  // MARK: What happens to it

  /// Another server takes over, on a new timeline, which lacks the last transactions. Only the first one can lack some.
  package func failOver(losing transactions: Int = 0) throws {
    let last = transactions > 0 ? try commits().suffix(transactions).first : nil
    try stop()
    if let last {
      let former = "\(directory).former"
      try Files.rename(directory, to: former)
      try Self.copy(template, to: directory)
      try Self.set("restore_command", "cp \(former)/pg_wal/%f %p", in: directory)
      try Self.set("recovery_target_xid", last, in: directory)
      try Self.set("recovery_target_inclusive", "off", in: directory)
      try Self.set("recovery_target_action", "promote", in: directory)
    }
    try Self.run(["touch", "\(directory)/recovery.signal"])
    try launch()
    try Wait.until("the server is promoted") { try query("SELECT pg_is_in_recovery()") == "f" }
  }

  /// The numbers of all transactions since the start.
  private func commits() throws -> [String] {
    let log = try Self.output([
      try Self.program("pg_waldump"), "-p", "\(directory)/pg_wal", "-r", "Transaction", "-s", start,
    ])
    return log.split(separator: "\n").filter { $0.contains("desc: COMMIT") }.compactMap { line in
      let words = line.split { " ,".contains($0) }
      return words.firstIndex(of: "tx:").map { String(words[$0 + 1]) }
    }
  }

  /// The program that commits wait for does nothing until `resume`.
  package func freeze() { receiver.withLock { $0?.send(signal: SIGSTOP) } }
  package func resume() { receiver.withLock { $0?.send(signal: SIGCONT) } }

  /// As if it had lost power.
  package func stop() throws {
    try Self.run([try Self.program("pg_ctl"), "-D", directory, "-m", "immediate", "-w", "stop"])
  }

  package func launch() throws { try Self.launch(directory, at: place) }

  /// Keeps what it has for `putBack`.
  package func save() throws {
    try stop()
    try Self.run(["cp", "-a", directory, "\(directory).saved"], as: [])
    try launch()
  }

  /// It has again what it had at `save`, on the same timeline: a backup that is started as it is, or a disk's snapshot.
  package func putBack() throws {
    try stop()
    Files.removeTree(directory)
    try Files.rename("\(directory).saved", to: directory)
    try launch()
  }

  /// A way of the contents into a database system that was made anew.
  package enum Move: CaseIterable, Sendable { case dump, upgrade }

  /// The contents go on in another database system, which begins with timeline 1.
  package func move(by way: Move) throws {
    let former = "\(directory).former"
    let dumping = [try Self.program("pg_dumpall"), "-h", directory, "-U", "admin"]
    let contents = way == .dump ? try Self.output(dumping) : ""
    try Self.run([try Self.program("pg_ctl"), "-D", directory, "-m", "fast", "-w", "stop"])
    try Files.rename(directory, to: former)
    try Self.make(directory)
    for file in ["postgresql.conf", "pg_hba.conf"] { try Self.run(["cp", "\(former)/\(file)", directory]) }
    if way == .upgrade {
      let programs = try Self.program("")
      try Self.run([
        "sh", "-c", #"cd "$0" && exec "$@""#, former, try Self.program("pg_upgrade"), "-b", programs, "-B", programs,
        "-d", former, "-D", directory, "-U", "admin", "-s", former,
      ])
    }
    try launch()
    // The role that restores it is there already.
    try query(contents.replacing("CREATE ROLE admin;", with: ""))
  }

  // MARK: Standbys

  /// What a primary calls it.
  private var name: String { "server\(directory.split(separator: "/").last ?? "")" }

  private func way(to leader: PostgresCluster) -> String {
    "host=\(leader.directory) user=admin application_name=\(name)"
  }

  package func waitUntil(isFollowing: Bool) throws {
    let query = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'"
    try Wait.until("\(name) \(isFollowing ? "follows" : "is left behind")") {
      try self.query(query) == (isFollowing ? "1" : "0")
    }
  }

  /// The standby follows this server from now on; none if `nil`, so that it lacks what comes.
  package func follow(_ leader: PostgresCluster?) throws {
    try Self.set("primary_conninfo", leader.map(way) ?? "", in: directory)
    try query("SELECT pg_reload_conf()")
    try waitUntil(isFollowing: leader != nil)
  }

  /// The standby becomes the primary, on a new timeline.
  package func promote() throws {
    guard try query("SELECT pg_promote()") == "t" else { throw TestFailure("\(name) is not promoted") }
  }

  /// Up to where a standby has received the log of transactions.
  package var received: Int64 {
    get throws { Int64(try query("SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')")) ?? 0 }
  }

  /// Commits wait until one of these has them.
  package func cover(by standbys: [PostgresCluster]) throws {
    let names = standbys.map(\.name).joined(separator: ", ")
    try query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (\(names))'; SELECT pg_reload_conf()")
    try Wait.until("commits wait for a standby") {
      try query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "\(standbys.count)"
    }
  }

  /// The standby receives nothing from now on, or goes on.
  package func hold(_ isHeld: Bool) throws {
    let number = try query("SELECT pid FROM pg_stat_wal_receiver")
    guard let pid = Int32(number) else { throw TestFailure("\(name) has no process that receives") }
    guard Glibc.kill(pid, isHeld ? SIGSTOP : SIGCONT) == 0 else { throw TestFailure("kill: \(SystemError.current)") }
    if isHeld { try Wait.until("process \(pid) is stopped") { ProcessStatus(pid).isStopped } }
  }

  /// Ends the sessions whose commits wait for a standby, or only their wait.
  package func endCommits(andSessions: Bool) throws {
    let function = andSessions ? "pg_terminate_backend" : "pg_cancel_backend"
    try query("SELECT \(function)(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
  }

  private func cover() throws {
    let place = "\(directory)/received"
    try Self.run(["mkdir", place])
    let command = [
      try Self.program("pg_receivewal"), "-D", place, "--synchronous", "--no-loop",
      "-d", "host=\(directory) user=admin application_name=other",
    ]
    try receiver.withLock { $0 = try ChildProcess(Self.user + command) }
    try query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (other)'; SELECT pg_reload_conf()")
    try Wait.until("commits wait for the other program") {
      try query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "1"
    }
  }

  // MARK: Programs

  private static func program(_ name: String) throws -> String {
    guard let programs else { throw TestFailure("PostgreSQL is not installed; install Debian's package postgresql") }
    return "\(programs)/\(name)"
  }

  private static func make(_ path: String) throws {
    try run([
      try program("initdb"), "--pgdata=\(path)", "--username=admin", "--auth=trust", "--encoding=UTF8", "--locale=C",
      "--no-sync", "--wal-segsize=1",
    ])
  }

  private static func copy(_ template: String, to path: String) throws {
    try run(["cp", "-a", template, path], as: [])
    try set("unix_socket_directories", path, in: path)
  }

  private static func launch(_ path: String, at place: Place?) throws {
    do {
      if let place { try set("listen_addresses", place.address, in: path) }
      try run(
        [try program("pg_ctl"), "-D", path, "-l", "\(path)/log", "-w", "start"],
        as: (place?.prefix ?? []) + user
      )
    } catch { throw TestFailure("\(error)\n--- the server's log ---\n\((try? Files.text("\(path)/log")) ?? "")") }
  }

  private static func set(_ name: String, _ value: String, in path: String) throws {
    let file = "\(path)/postgresql.conf"
    try Files.write(Array((try Files.text(file) + "\(name) = '\(value)'\n").utf8), to: file)
  }

  private static func options(_ path: String, as role: String = "admin") -> [String] {
    ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", path, "-U", role, "-d", "postgres"]
  }

  @discardableResult
  private static func query(_ statements: String, at path: String, as role: String = "admin") throws -> String {
    let result = try ChildProcess.run([try program("psql")] + options(path, as: role), input: statements + "\n;\n")
    guard result.end == .exit(0) else { throw TestFailure("psql: \(result.errors)") }
    return result.output.split(separator: "\n").joined(separator: "\n")
  }

  private static func run(_ command: [String], as user: [String] = user) throws {
    let result = try ChildProcess.run(user + command)
    guard result.end == .exit(0) else { throw TestFailure("\(command): \(result.output) \(result.errors)") }
  }

  /// Of a program that may fail at the end of what it reads.
  private static func output(_ command: [String]) throws -> String { try ChildProcess.run(user + command).output }
}
