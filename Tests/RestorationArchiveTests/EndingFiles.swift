// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import Synchronization

/// The files of a broker that ends at one of its changes: that one fails, and all after it.
final class EndingFiles: FileSystem {
  enum Step { case change, sync }

  struct Cut {
    /// The number of the first step that fails.
    var end: Int
    /// Changes that seem to have happened.
    var lost: Set<Int>
  }

  private struct State {
    var steps: [Step] = []
    var hasBegun = false
  }

  private let cut: Cut
  private let state = Mutex(State())
  private let files = SystemFiles()

  init(_ cut: Cut) { self.cut = cut }

  /// Steps since `begin` that have not failed.
  var steps: [Step] { state.withLock { $0.steps } }

  func begin() { state.withLock { $0.hasBegun = true } }

  /// Whether the step is to happen.
  private func take(_ step: Step, _ path: String) throws(SystemError) -> Bool {
    let number = state.withLock { state -> Int? in
      guard state.hasBegun else { return nil }
      guard state.steps.count < cut.end else { return cut.end }
      state.steps.append(step)
      return state.steps.count - 1
    }
    guard let number else { return true }
    if number == cut.end { throw SystemError("change", path, code: 5) }
    return !cut.lost.contains(number)
  }

  func remove(_ path: String) throws(SystemError) {
    // What is not there is no change.
    guard try files.entry(path) != .absent else { return try files.remove(path) }
    if try take(.change, path) { try files.remove(path) }
  }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any OpenFile {
    guard access == .creating else { return try files.open(path, access) }
    let isKept = try take(.change, path)
    defer { if !isKept { try? files.remove(path) } }
    return try files.open(path, access)
  }

  func syncDirectory(_ path: String) throws(SystemError) {
    if try take(.sync, path) { try files.syncDirectory(path) }
  }

  var sqliteName: String? { nil }
  func entry(_ path: String) throws(SystemError) -> FileEntry { try files.entry(path) }
  func isSameDirectory(_ path: String, as other: String) throws(SystemError) -> Bool {
    try files.isSameDirectory(path, as: other)
  }
  func names(in directory: String) throws(SystemError) -> [String] { try files.names(in: directory) }
  func prepareDirectory(_ path: String) throws(SystemError) { try files.prepareDirectory(path) }
  func rename(_ path: String, to target: String) throws(SystemError) { try files.rename(path, to: target) }
  func link(_ path: String, to target: String) throws(SystemError) { try files.link(path, to: target) }
  func freeBytes(of directory: String) -> Int? { files.freeBytes(of: directory) }
  func random() -> (UInt64, UInt64) { files.random() }
}
