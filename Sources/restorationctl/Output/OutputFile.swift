// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A file that is written completely or not at all.
struct OutputFile {
  struct Fault: Error {
    let message: String
  }

  let path: String
  /// Its permissions if it is a regular file.
  var mode: mode_t = 0o600
  /// Whether the user chose the path. Otherwise others may have put a file there, which is replaced.
  var isChosen = true

  /// Replaces a file that may exist; a symbolic link to it stays. A device, a pipe or any other special file is written
  /// to directly.
  func write(_ text: String) throws(Fault) {
    guard isChosen else { return try replace(path, text) }
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      let descriptor = open(path, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw failure() }
      defer { close(descriptor) }
      return try fill(descriptor, text)
    }
    try replace(target, text)
  }

  /// The file after following links.
  private var target: String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private func replace(_ target: String, _ text: String) throws(Fault) {
    // In the same directory, so that renaming it is atomic.
    let draft = "\(target).\(getpid()).part"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure() }
    do throws(Fault) {
      try fill(descriptor, text)
      // Independent of the umask.
      guard fchmod(descriptor, mode) == 0 else { throw failure() }
      guard fsync(descriptor) == 0 else { throw failure() }
      guard rename(draft, target) == 0 else { throw failure() }
      close(descriptor)
    } catch {
      close(descriptor)
      unlink(draft)
      throw error
    }
  }

  private func fill(_ descriptor: Int32, _ text: String) throws(Fault) {
    let error = Output.write(text, descriptor: descriptor)
    if error != 0 { throw failure(error) }
  }

  private func failure(_ error: Int32 = errno) -> Fault {
    Fault(message: "\(path) cannot be written: \(String(cString: strerror(error)))")
  }

  /// Makes a directory for its owner only, unless the name exists.
  static func makeDirectory(_ path: String) throws(Fault) {
    guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
    throw Fault(message: "\(path) cannot be made: \(String(cString: strerror(errno)))")
  }

  /// Makes a new directory for its owner only.
  static func makePrivateDirectory(in folder: String) throws(Fault) -> String {
    var template = Array("\(folder)/restorationctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Fault(message: "no directory can be made in \(folder): \(String(cString: strerror(errno)))")
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Turns a fault into the failure of a command, by default of one that has `-o`.
  static func reporting<Result>(
    hint: String = "Name a place that you can write to by -o, or make room there.",
    _ body: () throws(Fault) -> Result
  ) throws -> Result {
    do throws(Fault) {
      return try body()
    } catch {
      throw Failure(ExitStatus.outputFailed, kind: "outputFailed", error.message, hint: hint)
    }
  }

  static func absolute(_ path: String) throws(Fault) -> String {
    path.hasPrefix("/") ? path : "\(try currentDirectory())/\(path)"
  }

  static func currentDirectory() throws(Fault) -> String {
    guard let directory = getcwd(nil, 0) else {
      throw Fault(message: "the current directory is unknown: \(String(cString: strerror(errno)))")
    }
    defer { free(directory) }
    return String(cString: directory)
  }

  static func read(_ path: String) throws(Fault) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { close(descriptor) }
    return try read(descriptor, path)
  }

  /// - Parameter subject: the descriptor's name in messages.
  static func read(_ descriptor: Int32, _ subject: String) throws(Fault) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count > 0 {
        bytes += buffer[..<count]
      } else if count == 0 {
        break
      } else if errno != EINTR {
        throw unreadable(subject)
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Fault(message: "\(subject) is not UTF-8") }
    return text
  }

  private static func unreadable(_ subject: String) -> Fault {
    Fault(message: "\(subject) cannot be read: \(String(cString: strerror(errno)))")
  }
}
