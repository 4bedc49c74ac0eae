// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc
internal import Spawning
internal import Synchronization

/// Where servers are measured: a private directory, and their processes. All of it is gone afterwards, also when the
/// benchmark is interrupted.
final class Stage: Sendable {
  let directory: String
  /// Servers on the first processor, the generator on the last: so neither takes time from the other.
  let isPinned: Bool
  private let processes = Mutex<Set<Int32>>([])
  private let count = Mutex(0)
  /// Held for good by whoever clears the stage because of a signal, so that nobody else ends the process.
  private let clearing = Mutex(())

  private static let processors = Int32(sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Pins the calling thread.
  ///
  /// - Parameter parent: where the private directory is made; it decides which disk is measured.
  init(in parent: String, pins: Bool) throws {
    var template = Array("\(parent)/restoration-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure.system(parent) }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    isPinned =
      pins && Self.processors > 1 && clinux_pin_thread(0) == 0 && clinux_pin_thread(Self.processors - 1) == 0
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
  }

  /// A new directory.
  func folder(_ name: String) throws -> String {
    let number = count.withLock { count in
      count += 1
      return count
    }
    let path = "\(directory)/\(number)-\(name)"
    guard mkdir(path, 0o700) == 0 else { throw Failure.system(path) }
    return path
  }

  /// Starts a program on the servers' processor. What it prints goes to `log`.
  func spawn(_ arguments: [String], environment: [String], log: String) throws -> Int32 {
    if isPinned { _ = clinux_pin_thread(0) }
    defer { if isPinned { _ = clinux_pin_thread(Self.processors - 1) } }
    let child = try Spawning.spawn(arguments, variables: environment) { actions in
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
      posix_spawn_file_actions_adddup2(&actions, 1, 2)
    }
    processes.withLock { _ = $0.insert(child) }
    return child
  }

  /// Runs a program to its end; returns what it has printed.
  ///
  /// - Throws: with the beginning of that if its status is another one than 0.
  @discardableResult
  func run(_ arguments: [String]) throws -> String {
    let log = try "\(folder("run"))/log"
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    let process = try spawn(arguments, environment: ["PATH=\(path)", "LC_ALL=C"], log: log)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    processes.withLock { _ = $0.remove(process) }
    let text = try Output.text(ofFile: log)
    guard status == 0 else { throw Failure("\(arguments[0]) failed: \(text.prefix(500))") }
    return text
  }

  /// Ends a process that was started here, unless it has ended by itself, and waits until it has.
  func end(_ process: Int32, _ signal: Int32 = SIGTERM) {
    guard processes.withLock({ $0.remove(process) }) != nil else { return }
    kill(process, signal)
    while waitpid(process, nil, 0) < 0, errno == EINTR {}
  }

  /// Whether a process has ended by itself.
  func hasEnded(_ process: Int32) -> Bool {
    guard waitpid(process, nil, WNOHANG) == process else { return false }
    processes.withLock { _ = $0.remove(process) }
    return true
  }

  /// - Parameter body: what is done in the end, before any other caller continues.
  func clear(_ body: () -> Void = {}) {
    clearing.withLock { _ in
      for process in processes.withLock({ $0 }) { end(process, SIGKILL) }
      Self.remove(directory)
      body()
    }
  }

  private static func remove(_ path: String) {
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard name != ".", name != ".." else { continue }
        if unlink("\(path)/\(name)") != 0 { remove("\(path)/\(name)") }
      }
      closedir(folder)
    }
    rmdir(path)
  }

  /// Clears the stage when the process is told to end. To be called before any thread is started.
  func clearWhenInterrupted() {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    var thread = pthread_t()
    let stage = Unmanaged.passRetained(self).toOpaque()
    pthread_create(
      &thread,
      nil,
      { stage in
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
        var signal: Int32 = 0
        sigwait(&signals, &signal)
        if let stage { Unmanaged<Stage>.fromOpaque(stage).takeUnretainedValue().clear { _exit(128 + signal) } }
        return nil
      },
      stage
    )
  }
}
