// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// How many archives there are and how many bytes they have, as the store last saw their files: for decisions that wait
/// for no disk.
package final class ArchiveSizes: Sendable {
  package struct Sum: Hashable, Sendable {
    package var archives: Int
    package var bytes: Int

    package init(archives: Int = 0, bytes: Int = 0) { (self.archives, self.bytes) = (archives, bytes) }
  }

  private struct State {
    var bytes: [String: Int] = [:]
    var all = Sum()
    /// By names without instances.
    var sums: [Substring: Sum] = [:]

    /// - Parameter size: `nil` if there is no such archive.
    mutating func set(_ application: String, _ size: Int?) {
      let before = bytes[application]
      guard before != size else { return }
      let (archives, growth) = ((size == nil ? 0 : 1) - (before == nil ? 0 : 1), (size ?? 0) - (before ?? 0))
      let name = application.prefix { $0 != "@" }
      let sum = sums[name, default: Sum()]
      bytes[application] = size
      all = Sum(archives: all.archives + archives, bytes: all.bytes + growth)
      let own = Sum(archives: sum.archives + archives, bytes: sum.bytes + growth)
      sums[name] = own.archives == 0 ? nil : own
    }
  }

  private let state = Mutex(State())

  package init() {}

  package var all: Sum { state.withLock { $0.all } }

  /// Of an application with all its instances.
  package func of(_ name: String) -> Sum { state.withLock { $0.sums[name[...]] ?? Sum() } }

  package func has(_ application: String) -> Bool { state.withLock { $0.bytes[application] != nil } }

  /// An archive has that size now; `nil` if it is gone.
  func note(_ application: String, bytes: Int?) { state.withLock { $0.set(application, bytes) } }

  /// Notes an archive that is about to be made, unless one too many would be; returns the limit that forbids it.
  func add(_ application: String, bytes: Int, within quota: ArchiveQuota) -> ArchiveError.Kind? {
    state.withLock { state in
      let sum = Sum(archives: state.all.archives + 1, bytes: state.all.bytes + bytes)
      if sum.archives > quota.applicationsMax {
        return .limit(name: "applicationsMax", max: quota.applicationsMax, value: sum.archives)
      }
      if sum.bytes > quota.allArchivesBytesMax {
        return .limit(name: "allArchivesBytesMax", max: quota.allArchivesBytesMax, value: sum.bytes)
      }
      state.set(application, bytes)
      return nil
    }
  }
}
