// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A place in the user's settings that makes a program of terminals come back.
struct SettingsPlace {
  enum Content {
    /// - Parameter mark: a word that such lines have, also if the user wrote them.
    case lines(SettingsBlock, mark: String)
    /// A link to a package of an editor.
    case link(to: String)
  }

  enum Change: Equatable {
    /// It is as it is to be.
    case none
    /// The user did it.
    case byHand
    case write(String)
    case link(String)
    case remove
  }

  /// The file or the link.
  let path: String
  let content: Content

  // MARK: Planning

  func installing() throws -> Change {
    switch content {
    case .lines(let block, let mark):
      let settings = try read()
      guard try !block.mentions(mark, in: stripped(of: block, settings)) else { return .byHand }
      let text = try checked { () throws(SettingsBlock.Unended) in try block.added(to: settings) }
      return text == settings ? .none : .write(text)
    case .link(let target):
      guard let found = Self.target(of: path) else { return Self.isThere(path) ? .byHand : .link(target) }
      if found == target { return .none }
      return isOurs ? .link(target) : .byHand
    }
  }

  func uninstalling() throws -> Change {
    switch content {
    case .lines(let block, _):
      let settings = try read()
      let text = try stripped(of: block, settings)
      return text == settings ? .none : .write(text)
    case .link: return Self.target(of: path) != nil && isOurs ? .remove : .none
    }
  }

  /// Whether the link leads to a plugin of restorationd, or nowhere any more.
  private var isOurs: Bool {
    guard access(path, F_OK) == 0 else { return true }
    return ["vim", "lua"].contains { access("\(path)/plugin/restoration.\($0)", F_OK) == 0 }
  }

  /// Whether the file has lines of this tool.
  var hasBlock: Bool {
    guard case .lines(let block, _) = content, let settings = try? read() else { return false }
    return (try? block.removed(from: settings)) != settings
  }

  /// Whether the program comes back by this place.
  var isInstalled: Bool {
    switch content {
    case .lines(let block, let mark): (try? block.mentions(mark, in: read())) ?? false
    case .link: access(path, F_OK) == 0
    }
  }

  // MARK: Applying

  func apply(_ change: Change) throws {
    switch change {
    case .none, .byHand: break
    case .write(let text): try write(text)
    case .link(let target):
      try makeFolders()
      unlink(path)
      guard symlink(target, path) == 0 else { throw failure("cannot be made") }
    case .remove:
      guard unlink(path) == 0 else { throw failure("cannot be removed") }
      // Folders that have nothing else in them: start, restoration, pack.
      for folder in Self.folders(of: path).suffix(3).reversed() { guard rmdir(folder) == 0 else { break } }
    }
  }

  /// A link stays, and so do the permissions.
  private func write(_ text: String) throws {
    var status = stat()
    let isThere = stat(path, &status) == 0
    if !isThere { try makeFolders() }
    // By sudo it would become root's.
    if isThere, status.st_uid != geteuid() { throw failure("belongs to user \(status.st_uid), not to you", nil) }
    if isThere, text.isEmpty, Self.target(of: path) == nil {
      // It was made by this tool, or had nothing to say.
      guard unlink(path) == 0 else { throw failure("cannot be removed") }
      return
    }
    let mode = isThere ? status.st_mode & 0o7777 : 0o644
    try reporting { () throws(OutputFile.Fault) in try OutputFile(path: path, mode: mode).write(text) }
  }

  /// Empty if there is no file.
  private func read() throws -> String {
    if !Self.isThere(path) { return "" }
    if Self.target(of: path) != nil, access(path, F_OK) != 0 {
      throw failure("is a link to a file that is not there", nil)
    }
    return try reporting(hint: "Mend it, or name the other programs only.") { () throws(OutputFile.Fault) in
      try OutputFile.read(path)
    }
  }

  private func makeFolders() throws {
    for folder in Self.folders(of: path) {
      try reporting { () throws(OutputFile.Fault) in try OutputFile.makeDirectory(folder) }
    }
  }

  private func stripped(of block: SettingsBlock, _ settings: String) throws -> String {
    try checked { () throws(SettingsBlock.Unended) in try block.removed(from: settings) }
  }

  // MARK: Failures

  private func checked(_ body: () throws(SettingsBlock.Unended) -> String) throws -> String {
    do throws(SettingsBlock.Unended) {
      return try body()
    } catch {
      let message = "\(path) has the comment that begins the lines of restorationctl, and not the one that ends them"
      throw Failure(ExitStatus.refused, kind: "unusable", message, hint: "Remove these lines from it by hand.")
    }
  }

  private func reporting<Result>(
    hint: String = "Change it by hand: see --dry-run.",
    _ body: () throws(OutputFile.Fault) -> Result
  ) throws -> Result {
    do throws(OutputFile.Fault) {
      return try body()
    } catch {
      throw Failure(ExitStatus.refused, kind: "unusable", error.message, hint: hint)
    }
  }

  private func failure(_ what: String, _ error: Int32? = errno) -> Failure {
    let reason = error.map { ": \(String(cString: strerror($0)))" } ?? ""
    return Failure(ExitStatus.refused, kind: "unusable", "\(path) \(what)\(reason)", hint: "Look at it: ls -ld \(path)")
  }

  // MARK: Files

  private static func isThere(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Where a link leads; `nil` if there is no link.
  private static func target(of path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The folders above a path, the uppermost first.
  private static func folders(of path: String) -> [String] {
    let parts = path.split(separator: "/").dropLast()
    return parts.indices.map { "/" + parts[...$0].joined(separator: "/") }
  }
}
