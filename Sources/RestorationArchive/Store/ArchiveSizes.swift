// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Number and bytes of the archives, as last seen, for decisions that must not wait for a disk.
package final class ArchiveSizes: Sendable {
  package struct Sum: Hashable, Sendable {
    package var archives: Int
    package var bytes: Int

    package init(archives: Int = 0, bytes: Int = 0) { (self.archives, self.bytes) = (archives, bytes) }
  }

  private struct State {
    var bytes: [String: Int] = [:]
    var all = Sum()

    /// - Parameter size: `nil` if there is no such archive.
    mutating func set(_ application: String, _ size: Int?) {
      let before =
        if let size { bytes.updateValue(size, forKey: application) } else { bytes.removeValue(forKey: application) }
      all.archives += (size == nil ? 0 : 1) - (before == nil ? 0 : 1)
      all.bytes += (size ?? 0) - (before ?? 0)
    }
  }

  private let state = Mutex(State())

  package init() {}

  package var all: Sum { state.withLock { $0.all } }

  /// The sum of an application's instances. Looks at all archives, so only sandboxed applications are asked for.
  package func of(_ name: String) -> Sum {
    let instances = name + "@"
    return state.withLock { state in
      state.bytes.reduce(into: Sum()) { sum, archive in
        guard archive.key == name || archive.key.hasPrefix(instances) else { return }
        sum.archives += 1
        sum.bytes += archive.value
      }
    }
  }

  package func has(_ application: String) -> Bool { state.withLock { $0.bytes[application] != nil } }

  /// Sets an archive's size; `nil` if it is gone.
  func note(_ application: String, bytes: Int?) { state.withLock { $0.set(application, bytes) } }

  /// Adds an archive before it is made; returns the limit that forbids it.
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
