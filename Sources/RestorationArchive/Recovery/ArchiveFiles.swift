// SPDX-License-Identifier: Apache-2.0

/// The names of one application's files in the archives directory.
///
/// `+` is invalid in the name of an application, so no application's archive can be mistaken for another's copy.
package struct ArchiveFiles {
  let application: String

  init(_ application: String) { self.application = application }

  var main: String { application + Self.suffix }
  var log: String { main + Self.logSuffix }
  /// A rollback journal, which SQLite would play back. No archive has one.
  var journal: String { main + Self.journalSuffix }
  /// The newest sequence that was acknowledged (`AcknowledgedMark`).
  var mark: String { "\(application)+mark" }
  var backup: String { "\(application)+backup\(Self.suffix)" }
  /// A copy from before the archive was migrated from format 1.
  var former: String { "\(application)+format1\(Self.suffix)" }
  var newBackup: String { "\(application)+newbackup\(Self.suffix)" }
  /// An archive being made, or made from the backup, before it gets its name.
  var fresh: String { "\(application)+new\(Self.suffix)" }

  /// Says that the archive was removed, so that the remaining files start no recovery. It is deleted with the last of
  /// them, or when there is a new archive.
  var removed: String { "\(application)+removed" }

  /// This host's note of the copy and the replica (`ArchiveCarrying`).
  var replica: String { application + Self.replicaSuffix }
  /// A longer file is no such note.
  package static let noteBytesMax = 16_384
  /// A copy on its way to the replica, or aside, and one that comes from there.
  var outgoing: String { "\(application)+outgoing\(Self.suffix)" }
  var incoming: String { "\(application)+incoming\(Self.suffix)" }
  var conflictPrefix: String { "\(application)+conflict-" }

  /// Copies being made: without a meaning once the broker has ended.
  var drafts: [String] { [fresh, newBackup, outgoing, incoming] }

  /// Files that mean nothing without the main file, except to a recovery.
  var beside: [String] { [log, mark, backup, former] + drafts }

  var damagedPrefix: String { "\(application)+damaged-" }

  func damaged(_ number: Int) -> (main: String, log: String) {
    let main = "\(damagedPrefix)\(number)\(Self.suffix)"
    return (main, main + Self.logSuffix)
  }

  static let suffix = ".sqlite"
  static let replicaSuffix = "+replica"
  static let logSuffix = "-wal"
  static let journalSuffix = "-journal"

  /// The application whose archive a file is; `nil` for every other file.
  static func application(of name: String) -> String? {
    guard name.hasSuffix(suffix) else { return nil }
    let application = String(name.dropLast(suffix.count))
    return isApplication(application) ? application : nil
  }

  /// The application whose `replica` a file is; `nil` for every other file.
  static func application(ofNote name: String) -> String? {
    guard name.hasSuffix(replicaSuffix) else { return nil }
    let application = String(name.dropLast(replicaSuffix.count))
    return isApplication(application) ? application : nil
  }

  /// The application of which a copy with this name was set aside; `nil` for every other name. Such a copy is read, and
  /// removed, as if it were an application of that name.
  package static func application(ofCopy name: String) -> String? {
    guard let mark = name.utf8.firstIndex(of: UInt8(ascii: "+")) else { return nil }
    let files = ArchiveFiles(String(name[..<mark]))
    let number = name.utf8.dropFirst(files.conflictPrefix.utf8.count)
    guard name.hasPrefix(files.conflictPrefix), !number.isEmpty, isApplication(files.application),
      number.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return files.application
  }

  package static func isSetAside(_ name: String) -> Bool { application(ofCopy: name) != nil }

  var isSetAside: Bool { Self.isSetAside(application) }

  /// Whether a text names an application: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, optionally `@` and an instance of the
  /// same letters, at most 48.
  package static func isApplication(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    switch parts.count {
    case 1: return isName(parts[0], lengthMax: 128)
    case 2: return isName(parts[0], lengthMax: 128) && isName(parts[1], lengthMax: 48)
    default: return false
    }
  }

  private static func isName(_ bytes: Substring.UTF8View, lengthMax: Int) -> Bool {
    guard let first = bytes.first, first.isASCIIAlphanumeric, bytes.count <= lengthMax else { return false }
    return bytes.allSatisfy { byte in
      byte.isASCIIAlphanumeric || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
    }
  }
}

extension UInt8 {
  var isASCIIAlphanumeric: Bool {
    switch self {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
