// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import SeededRandom

/// One run of `killAtRandomPoints`: starts and kills the application.
actor Proof {
  struct Options: Sendable {
    let command: [String]
    let kills: Int
    let changing: [String]
    let allowing: [String: @Sendable (RestorableValue, RestorableValue) -> Bool]
    let seed: UInt64
    let patience: Duration
    let quiet: Duration
    let work: (@Sendable (TestedProcess) async throws -> Void)?
  }

  struct Key: Hashable {
    let application: String
    let path: [String]
  }

  /// The actions of one process group, told by the broker's events.
  struct Run {
    var process: TestedProcess?
    /// Writes, and perhaps registrations, until it is killed.
    var left: Int?
    var countsRegistrations = true
    let started = Timestamp.now()
    var pids: Set<Int64> = []
    /// Events of any process.
    var events = 0
    var (sessions, writes) = (0, 0)
    var pushed: Set<Key> = []
    var last = ContinuousClock.now
    var wasKilled = false

    var hasEnded: Bool { sessions <= 0 && process?.hasEnded ?? false }
  }

  /// The most writes before a kill, or, during a start, of registrations and writes.
  private static let (writesMax, eventsMax) = (12, 4)
  /// The least timeout for opening a session.
  private static let startMin = Duration.seconds(30)
  /// The timeout for the end of a killed application's sessions.
  private static let endMax = Duration.seconds(60)

  let options: Options
  let connection: BrokerConnection
  private let broker: PrivateBroker
  private let signal = Signal()
  private var failure: String?
  private(set) var run = Run()
  /// Entries of the export format, at the kill.
  var saved: [Key: JSONValue] = [:]
  private var shown: Set<Key> = []
  /// Each with the process that has decoded it.
  var decoded: [Key: Int64] = [:]
  private var applications: Set<String> = []
  /// Processes whose sessions may outlive them.
  private var detached: Set<Int64> = []
  private var when = "in its first run"

  init(_ broker: PrivateBroker, _ connection: BrokerConnection, _ options: Options) {
    (self.broker, self.connection, self.options) = (broker, connection, options)
  }

  private var name: String { options.command.joined(separator: " ") }
  private var start: Duration { max(options.patience, Self.startMin) }

  func prove() async throws {
    let names: [EventName] = [
      .sessionBegan, .sessionEnded, .objectRegistered, .objectUnregistered, .pathChanged, .stateEncoded,
      .generationSealed,
    ]
    // Their reader waits during comparisons and ends of processes. It is a child of this task, so that both run, or
    // neither, if tests block the threads of Swift's pool.
    let events = try await answer(of: "subscribe") { [connection] in
      try await connection.subscribe(toNamed: names.map(\.rawValue), application: nil, capacity: .max)
    }
    async let _: Void = read(events)
    defer { run.process?.kill() }
    var random = SeededGenerator(seed: options.seed)
    for number in 1...options.kills {
      let starting = number > 1 && Int.random(in: 0..<4, using: &random) == 0
      let point = Int.random(in: 1...(starting ? Self.eventsMax : Self.writesMax), using: &random)
      try begin(killedAfter: starting ? point : nil)
      if starting {
        try await settle(options.quiet, ContinuousClock.now + options.patience)
      } else {
        try await compare()
        try await work(until: point)
      }
      try await kill()
      // A start changes nothing, and a later comparison finds its losses.
      if !starting { saved = try await snapshot() }
      guard starting || !saved.isEmpty || run.writes > 0 else {
        throw TestingError(
          "\(name) has saved nothing in \(Self.startMin), \(when), so nothing is proven: let it push its states, or "
            + "serve encode, or give work that makes it push"
        )
      }
      when =
        "after kill \(number) of \(options.kills), "
        + (starting ? "while it started" : "at its write \(run.writes)")
    }
    try begin(killedAfter: nil)
    try await compare()
    try await kill()
    let never = saved.keys.filter { !shown.contains($0) }.map { "\($0.application) \($0.path.joined(separator: "/"))" }
    guard never.isEmpty, !shown.isEmpty else {
      throw TestingError(
        "\(name) has never shown \(never.isEmpty ? "anything" : never.sorted().joined(separator: ", ")) when it was "
          + "back, so nothing is proven: let it push its states, or serve encode and accept rounds, or give work that "
          + "makes it push"
      )
    }
  }
}

extension Proof {
  /// Starts the application; takes no event before its process is known.
  private func begin(killedAfter events: Int?) throws {
    run = Run()
    run.left = events
    decoded = [:]
    let process = try broker.spawn(options.command)
    run.process = process
    try ProcessEnd.watch(process.pid) { [signal] in signal.raise() }
  }

  /// Kills the application and waits until the broker has reported the end of its sessions: a process started before
  /// would find its objects owned.
  private func kill() async throws {
    killGroup()
    let end = ContinuousClock.now + Self.endMax
    while true {
      let seen = run.events
      // The events of the last sessions may be missing.
      if run.sessions <= 0, try await sessionsOfKilled().isEmpty && run.sessions <= 0 { return }
      guard try await wait(until: end, { $0.events != seen }) else {
        let left = try await sessionsOfKilled()
        throw TestingError(
          "\(name) was killed with its group, and \(Self.endMax) later the broker has not ended its sessions "
            + "(\(left.sorted().joined(separator: ", "))): let its processes stay in its group"
        )
      }
    }
  }

  /// The broker's sessions of the killed processes. The broker accepts this new connection after theirs.
  private func sessionsOfKilled() async throws -> [String] {
    let killed = run.pids.union(try (run.process?.killed ?? []).map(Int64.init)).subtracting(detached)
    let connection = try await broker.connect()
    var sessions: [String] = []
    let listed = try await answer(of: "listApplications") { try await connection.call(ListApplications()) }
    for overview in listed.applications where overview.sessions > 0 {
      let application = overview.application.description
      do {
        let described = try await answer(of: "describeApplication") {
          try await connection.describeApplication(application)
        }
        sessions += described.sessions.filter { killed.contains($0.pid) }
          .map { "process \($0.pid) in \(application)" }
      } catch let error as RestorationError where error.code == .unknownApplication {
        continue  // its last session has just ended
      }
    }
    await connection.close()
    return sessions
  }

  private func killGroup() {
    run.wasKilled = true
    run.process?.kill()
  }

  private func check() throws {
    guard run.hasEnded, !run.wasKilled, let process = run.process else { return }
    process.kill()
    throw TestingError(
      "\(name) ended by itself \(process.ending ?? ""), \(when); it has to go on until it is killed; repeat this with "
        + "seed \(options.seed)"
    )
  }

  /// Lets the application work until it is killed at the point, or writes nothing more.
  private func work(until point: Int) async throws {
    let begun = ContinuousClock.now
    var (idle, writes) = (0, run.writes)
    (run.left, run.countsRegistrations) = (point, false)
    // Before a save nothing can be lost.
    while !run.wasKilled,
      idle < (options.work == nil ? 1 : 10)
        || saved.isEmpty && writes == 0 && ContinuousClock.now < begun + Self.startMin
    {
      try check()
      try await doOne()
      for application in applications.sorted() { _ = try await look(application, ask: true) }
      let seen = writes
      _ = try await wait(for: options.quiet) { $0.writes > seen || $0.wasKilled }
      (idle, writes) = (run.writes > writes ? 0 : idle + 1, run.writes)
    }
  }

  private func doOne() async throws {
    guard let work = options.work, let process = run.process else { return }
    do {
      try await work(process)
    } catch {
      // The application may be gone, which the broker tells a little later. Otherwise that error is the one to report.
      _ = try await wait(for: .seconds(5)) { $0.wasKilled || $0.hasEnded }
      if run.wasKilled { return }
      try check()
      throw error
    }
  }

  /// Waits until the application shows everything as saved. After the timeout throws the losses.
  private func compare() async throws {
    try await settle(options.quiet, ContinuousClock.now + start)
    var (end, mayWork, quiet) = (ContinuousClock.now + options.patience, options.work != nil, options.quiet)
    // Before the one piece of work; a slow application may take its time to answer that.
    var writes: Int?
    while true {
      try await settle(quiet, end)
      try check()
      guard !run.pids.isEmpty else {
        throw TestingError(
          "\(name) has no session \(start) after its start, \(when); it has to open one, but not over HTTP, at the "
            + "broker to which RESTORATIOND_SOCKET leads"
        )
      }
      let (silent, losses) = try await lost()
      let (seen, isOver) = (run.last, ContinuousClock.now >= end)
      let isIdle = !silent.isEmpty && silent.values.allSatisfy(\.self)
      if isIdle && !isOver && quiet < options.patience / 3 {
        // The application may be slow: early work would hide its states.
        quiet = options.patience / 3
      } else if isIdle && mayWork {
        writes = run.writes
        try await doOne()
        (end, mayWork, quiet) = (ContinuousClock.now + options.patience, false, options.quiet)
      } else if losses.isEmpty && (isOver || run.writes != writes) {
        return shown.formUnion(saved.keys.filter { silent[$0] == nil })
      } else if isOver {
        let summary = "\(name) lost what it had saved, \(when); repeat this with seed \(options.seed)"
        let isAfterWork = options.work != nil && !mayWork
        throw LostStateError(losses: losses, seed: options.seed, summary: summary, isAfterWork: isAfterWork)
      } else {
        _ = try await wait(until: min(end, ContinuousClock.now + options.quiet)) { $0.last != seen }
      }
    }
  }

  /// The saved states of the killed processes' objects, and of the application itself.
  private func snapshot() async throws -> [Key: JSONValue] {
    var saved: [Key: JSONValue] = [:]
    for application in applications {
      let view = try await look(application, ask: false)
      for (path, entry) in view.entries where entry["state"] != nil && (path.isEmpty || view.orphans.contains(path)) {
        // An early state at the start of a process hides nothing from the next one (R19).
        saved[Key(application: application, path: path)] = entry["beforeClaim"] ?? entry
      }
    }
    return saved
  }
}

extension Proof {
  private func read(_ events: EventSubscription) async {
    do {
      for try await event in events {
        take(event)
        signal.raise()
      }
      fail("the broker's events ended")
    } catch {
      fail("the broker's events ended (\(error)); let it run as long as killAtRandomPoints")
    }
  }

  private func take(_ event: BrokerEvent) {
    run.events += 1
    guard let facts = try? JSONCodec.parse(event.jsonText.utf8) else { return fail("\(event) cannot be read") }
    let (pid, application) = (facts["pid"]?.integer, facts["application"]?.string ?? "")
    if event.name == "eventsLost" {
      return fail("events of the broker were lost; give it a larger eventBytesMax, such as 1 << 28")
    }
    if event.name == "sessionBegan", facts["detached"] == true, let pid { detached.insert(pid) }
    if event.name == "sessionBegan", facts["detached"] == false, let pid, isFollowed(pid) {
      run.pids.insert(pid)
      applications.insert(application)
      run.sessions += 1
    } else if let value = facts["pid"], !(value.integer.map(run.pids.contains) ?? false) {
      return  // another process's, or a call without a session
    } else if event.name == "sessionEnded" {
      run.sessions -= 1
    } else if event.name == "stateEncoded" {
      run.pushed.insert(Key(application: application, path: facts["path"].map(path) ?? []))
    }
    let isWrite = event.name == "stateEncoded" || event.name == "generationSealed" && facts["kind"] == "round"
    let counts = isWrite || event.name == "objectRegistered" && run.countsRegistrations
    run.writes += isWrite ? 1 : 0
    run.last = ContinuousClock.now
    if counts, let left = run.left {
      run.left = left - 1
      if left == 1 && !run.wasKilled { killGroup() }
    }
  }

  private func isFollowed(_ pid: Int64) -> Bool {
    guard let process = run.process, let number = Int32(exactly: pid) else { return false }
    return getpgid(number) == process.pid
  }

  private func fail(_ reason: String) {
    failure = failure ?? reason
    signal.raise()
  }

  private func wait(for time: Duration, _ holds: (Run) -> Bool) async throws -> Bool {
    try await wait(until: ContinuousClock.now + time, holds)
  }

  /// Waits until the condition holds, and returns whether it does. Throws if events do not come.
  private func wait(until end: ContinuousClock.Instant, _ holds: (Run) -> Bool) async throws -> Bool {
    while true {
      let seen = signal.count
      try Task.checkCancellation()
      if let failure { throw TestingError(failure) }
      if holds(run) { return true }
      if ContinuousClock.now >= end { return false }
      async let _: Void = signal.raise(at: end)
      await signal.wait(past: seen)
    }
  }

  /// Waits until the application has a session and is quiet, or has ended.
  private func settle(_ quiet: Duration, _ end: ContinuousClock.Instant) async throws {
    while !run.hasEnded {
      let seen = run.last
      let ready = run.sessions > 0 ? min(run.last + quiet, end) : end
      guard try await wait(until: ready, { $0.last != seen || $0.hasEnded }) else { return }
    }
  }
}

extension Timestamp {
  fileprivate static func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
  }
}

/// A path from an answer; empty for the application itself.
func path(_ value: JSONValue) -> [String] { value.array?.compactMap(\.string) ?? [] }
