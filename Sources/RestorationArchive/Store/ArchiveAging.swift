// SPDX-License-Identifier: Apache-2.0

/// A store that keeps files knows when they were written, and keeps a list of days beside them. Not in `ArchiveStore`,
/// which knows neither files nor a clock.
package protocol ArchiveAging: Sendable {
  /// The summary of the first application after `name` whose files were not written since `time`, in milliseconds since
  /// 1970; `nil` if there is none. Opens no archive.
  func unwritten(since time: Int64, after name: String) async throws(ArchiveError) -> ArchiveSummary?

  /// The text that `keepDays` was given last; `nil` if there is none.
  func days() async throws(ArchiveError) -> String?

  func keepDays(_ text: String) async throws(ArchiveError)
}

extension SQLiteArchiveStore: ArchiveAging {
  private static let daysFile = "days"
  /// Ten years and more.
  private static let daysBytesMax = 1 << 16

  package func unwritten(since time: Int64, after name: String) async throws(ArchiveError) -> ArchiveSummary? {
    for application in try applications() where application > name {
      if isUnwritten(ArchiveFiles(application), since: time), let summary = await summary(of: application) {
        return summary
      }
    }
    return nil
  }

  /// False if it is not known.
  private func isUnwritten(_ files: ArchiveFiles, since time: Int64) -> Bool {
    [files.main, files.log].allSatisfy { name in
      switch try? directory.entry(name) {
      case .file(_, let changed, _)?: Int64(changed / 1_000_000) < time
      case .absent?: name == files.log
      case .other?, nil: false
      }
    }
  }

  package func days() async throws(ArchiveError) -> String? {
    do throws(SystemError) {
      let entry = try directory.entry(Self.daysFile)
      guard entry != .absent else { return nil }
      // Whatever else it is holds no days.
      guard case .file(let size, _, _) = entry, size <= Self.daysBytesMax else { return "" }
      var text: [UInt8] = []
      try directory.read(Self.daysFile) { text.append(contentsOf: $0) }
      return String(decoding: text, as: UTF8.self)
    } catch {
      throw ArchiveError(.definite, error.message)
    }
  }

  package func keepDays(_ text: String) async throws(ArchiveError) {
    do throws(SystemError) {
      try directory.keep(text, as: Self.daysFile)
    } catch {
      throw ArchiveError(.definite, error.message)
    }
  }
}
