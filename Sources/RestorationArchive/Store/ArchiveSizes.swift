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

  /// Of an application with all its instances. Looks at all archives: only those in a sandbox are asked about so.
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
