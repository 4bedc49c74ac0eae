// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationWire

/// The directory with the programs to run, in the user's configuration: a file for each ID.
///
/// *Invariant*: the user wrote what is read here. No archive or client decides what is run.
final class RunFiles {
  let path: String
  private let descriptor: Int32

  init() throws {
    // Not `$XDG_CONFIG_HOME`: the user's manager looks for the file as well, and its value may differ from the shell's.
    guard let home = Terminal.variable("HOME"), home.hasPrefix("/") else {
      let hint = "Set it to your home directory."
      throw Failure(ExitStatus.usage, kind: "usage", "HOME names no directory", hint: hint)
    }
    let path = "\(home)/.config/restorationd/run"
    try Self.reporting { () throws(OutputFile.Fault) in
      for parent in ["\(home)/.config", "\(home)/.config/restorationd", path] { try OutputFile.makeDirectory(parent) }
    }
    self.path = path
    descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.unusable("\(path) is not a directory that you can read") }
    try Self.check(descriptor, S_IFDIR, path)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Excludes other processes that change files and enable units, of any ID. A service that stops takes the lock as
  /// well, so the caller must not wait for one meanwhile.
  func locked<Result>(_ body: () throws -> Result) throws -> Result {
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw Self.unusable("\(path) cannot be locked: \(Self.reason)") }
    }
    defer { _ = flock(descriptor, LOCK_UN) }
    return try body()
  }

  /// In ascending order.
  func ids() throws -> [RunID] {
    guard let entries = opendir(path) else { throw Self.unusable("\(path) cannot be read: \(Self.reason)") }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      names.append(name)
    }
    // Other files are incomplete or not ours.
    return names.sorted().compactMap { RunID($0) }
  }

  /// `nil` if the ID has no file.
  func read(_ id: RunID) throws -> RunProgram? {
    let path = file(id)
    // Not blocking: a pipe would wait for a writer.
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if descriptor < 0, errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw Self.unusable("\(path) cannot be read: \(Self.reason)", id) }
    defer { close(descriptor) }
    try Self.check(descriptor, S_IFREG, path, id)
    let text = try Self.reporting { () throws(OutputFile.Fault) in try OutputFile.read(descriptor, path) }
    guard let program = RunProgram(text) else {
      throw Self.unusable("\(path) is not as restorationctl run writes it", id)
    }
    return program
  }

  /// The file is complete and on disk when this returns, or not written at all.
  func write(_ program: RunProgram, _ id: RunID) throws {
    let text = program.text.string + "\n"
    try Self.reporting { () throws(OutputFile.Fault) in try OutputFile(path: file(id)).write(text) }
    try sync()
  }

  /// False if the ID has no file.
  func remove(_ id: RunID) throws -> Bool {
    if unlink(file(id)) != 0 {
      guard errno == ENOENT else { throw Self.unusable("\(file(id)) cannot be removed: \(Self.reason)") }
      return false
    }
    try sync()
    return true
  }

  private func file(_ id: RunID) -> String { "\(path)/\(id)" }

  /// Makes the names in the directory durable.
  private func sync() throws {
    guard fsync(descriptor) == 0 else { throw Self.unusable("\(path) cannot be written: \(Self.reason)") }
  }

  /// Another user who can write the file could decide what is run.
  private static func check(_ descriptor: Int32, _ kind: mode_t, _ path: String, _ id: RunID? = nil) throws {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == kind else {
      throw unusable("\(path) is not a regular file", id)
    }
    guard status.st_uid == geteuid() else { throw unusable("\(path) belongs to user \(status.st_uid), not to you", id) }
    guard status.st_mode & 0o022 == 0 else {
      throw Failure(
        ExitStatus.refused,
        kind: "unusable",
        "other users can write \(path)",
        hint: "Check its contents, and keep them out: chmod go-w \(path)"
      )
    }
  }

  private static func unusable(_ message: String, _ id: RunID? = nil) -> Failure {
    let hint = id.map { "Remove it, and run the program again: restorationctl run --forget \($0)" }
    let other = "Look at it: ls -ld ~/.config/restorationd/run"
    return Failure(ExitStatus.refused, kind: "unusable", message, hint: hint ?? other)
  }

  private static var reason: String { String(cString: strerror(errno)) }

  private static func reporting<Result>(_ body: () throws(OutputFile.Fault) -> Result) throws -> Result {
    do throws(OutputFile.Fault) {
      return try body()
    } catch {
      throw unusable(error.message)
    }
  }
}
