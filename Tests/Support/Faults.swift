// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What happens to a program's calls to the system: they are counted, fail, kill it, or are recorded.
///
/// A library that is preloaded into the program (`Tests/Faults/faults.c`) does this, so that it needs no rights and no
/// tracer, and counts the calls of all threads together. The program and the test share a file that arms it; so a fault
/// can also be armed, or the clock be set, while the program runs.
package final class Faults {
  /// Calls that change something outside of the process, or ask for more of something; in the order of `faults.c`.
  package enum Call: Int, CaseIterable, Sendable {
    case pwrite, fdatasync, fsync, ftruncate, unlink, rename, link, mkdir
    /// `open` with `O_CREAT`, and without.
    case create, open
    case fallocate, lock
    /// To a client, or to the service manager.
    case send
    case accept, epoll, malloc
  }

  package enum Action: Sendable {
    case fail(Int32)
    /// The program is killed before the kernel carries the call out.
    case kill
    /// Half of the sectors of 512 bytes are written, then the program is killed.
    case tear
    /// Success is told, and nothing done.
    case lie
    /// The call never returns.
    case hang
  }

  /// If the library can be built here.
  package static let isUsable = (try? library.get()) != nil
  package static let requirement = "needs a C compiler, cc; run Tests/run.sh, which installs one"

  private static let library = Result { () throws in
    let library = "\(Products.directory)/faults.so"
    let unfinished = "\(library).\(getpid())"
    let source = "\(Products.repository)/Tests/Faults/faults.c"
    let flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    let result = try ChildProcess.run(["cc"] + flags + ["-o", unfinished, source], Deadline(.seconds(60)))
    guard result.end == .exit(0) else { throw TestFailure("cc: \(result.errors)") }
    try Files.rename(unfinished, to: library)
    return library
  }

  private static let words = 1 + 5 * Call.allCases.count

  private let control: FileDescriptor
  /// What the program has to be started with.
  package let variables: [String: String]

  /// - Parameters:
  ///   - name: of the file in the directory that is shared with the program.
  ///   - directory: what is done to its files is recorded, and everything that is sent.
  ///   - log: the file of these records.
  package init(
    in scratch: ScratchDirectory,
    as name: String = "faults",
    recording directory: String? = nil,
    into log: String? = nil
  ) throws {
    let path = scratch.file(name)
    try Files.write([UInt8](repeating: 0, count: Self.words * 8), to: path)
    control = FileDescriptor(owning: Glibc.open(path, O_RDWR | O_CLOEXEC))
    var variables = ["LD_PRELOAD": try Self.library.get(), "FAULTS_CONTROL": path]
    if let directory { variables["FAULTS_DIRECTORY"] = directory }
    if let log { variables["FAULTS_LOG"] = log }
    self.variables = variables
  }

  private func slot(_ call: Call) -> Int { 1 + 5 * call.rawValue }

  private func write(_ words: [Int64], at slot: Int) { pwrite(control.number, words, words.count * 8, off_t(slot * 8)) }

  /// How often the program has made a call.
  package func count(_ call: Call) -> Int {
    var word: Int64 = 0
    pread(control.number, &word, 8, off_t(slot(call) * 8))
    return Int(word)
  }

  /// Counts from the beginning, and no call meets anything.
  package func reset() { write([Int64](repeating: 0, count: Self.words), at: 0) }

  /// What happens to a call from the `number`-th on, or only then.
  package func arm(_ call: Call, _ action: Action, from number: Int, onlyOnce: Bool = false) {
    let (code, error): (Int64, Int32) =
      switch action {
      case .fail(let error): (0, error)
      case .kill: (1, 0)
      case .tear: (2, 0)
      case .lie: (3, 0)
      case .hang: (4, 0)
      }
    // The first number comes last: the program may be making the call now.
    write([onlyOnce ? Int64(number) : .max, code, Int64(error)], at: slot(call) + 2)
    write([Int64(number)], at: slot(call) + 1)
  }

  package func disarm(_ call: Call) { write([0, 0], at: slot(call) + 1) }

  /// How far the program's wall clock is ahead.
  package func setClock(ahead duration: Duration) { write([duration.milliseconds], at: 0) }
}
