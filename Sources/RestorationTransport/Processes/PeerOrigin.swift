// SPDX-License-Identifier: Apache-2.0

/// Where a peer's process runs, as far as that limits the peer. Pure: facts about the process in, the verdict out.
///
/// A Flatpak is recognised by two things that an application in it cannot change: the scope of its processes, and a
/// file in its root. A process that has only one of them is somewhere else, or pretends.
package enum PeerOrigin: Hashable, Sendable {
  /// In no sandbox, or in one that isolates nothing, such as a mount namespace alone.
  case host
  case flatpak(String)
  /// Perhaps in a sandbox, but of an unknown application.
  case unclear(Doubt)

  package enum Doubt: Hashable, Sendable {
    case ended
    case unseen
    case otherUserNamespace
    case halfFlatpak
  }

  package init(of process: some ProcessFacts) {
    self = Self.judge(process)
    // The number of a live process is not reused, so all facts read by it are about this process.
    if process.hasEnded { self = .unclear(.ended) }
  }

  /// Reads the root only if the process is in a Flatpak's scope; otherwise it would decide nothing. A process in
  /// another sandbox may have made its own root, on a file system that answers when it likes; Flatpak does not let its
  /// applications mount any.
  private static func judge(_ process: some ProcessFacts) -> PeerOrigin {
    guard let groups = process.controlGroups else { return .unclear(.unseen) }
    let scopes = flatpakScopes(in: groups)
    if scopes.isEmpty {
      switch process.isInOurUserNamespace {
      case true?: return .host
      case false?: return .unclear(.otherUserNamespace)
      case nil: return .unclear(.unseen)
      }
    }
    guard let info = process.flatpakInfo, let application = application(inInfo: info),
      scopes.allSatisfy({ isScope($0, of: application) })
    else { return .unclear(.halfFlatpak) }
    return .flatpak(application)
  }

  // MARK: Flatpak's words

  /// Names of control groups that look like a Flatpak's, in all hierarchies: `app-flatpak-ID-NUMBER.scope`.
  private static func flatpakScopes(in groups: String) -> [Substring] {
    groups.split { $0 == "/" || $0 == "\n" }.filter { $0.hasPrefix(scopePrefix) }
  }

  private static let scopePrefix = "app-flatpak-"

  private static func isScope(_ name: Substring, of application: String) -> Bool {
    let (start, end) = (scopePrefix + escaped(application) + "-", ".scope")
    guard name.hasPrefix(start), name.hasSuffix(end) else { return false }
    let number = name.dropFirst(start.count).dropLast(end.count)
    return !number.isEmpty && number.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// A name in the form of a unit's name: other bytes become `\x` and two digits.
  private static func escaped(_ name: String) -> String {
    name.utf8.map { byte in
      let character = Character(UnicodeScalar(byte))
      if character.isASCII && (character.isLetter || character.isNumber) || ":_.".contains(character) {
        return String(character)
      }
      return #"\x"# + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }

  /// `name` in the group `Application` of a key file; `nil` if there is none, or several.
  private static func application(inInfo text: String) -> String? {
    var isInGroup = false
    var names: [Substring] = []
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("[") {
        isInGroup = line == "[Application]"
      } else if isInGroup, let equals = line.firstIndex(of: "="), line[..<equals].trimmed == "name" {
        names.append(line[line.index(after: equals)...].trimmed)
      }
    }
    guard names.count == 1, let name = names.first, !name.isEmpty else { return nil }
    return String(name)
  }
}

extension PeerOrigin.Doubt: CustomStringConvertible {
  package var description: String {
    switch self {
    case .ended: "its process has ended"
    case .unseen: "/proc could not be read for its process"
    case .otherUserNamespace: "its process is in another user namespace than the broker"
    case .halfFlatpak: "its process is in a Flatpak's control group, and its /.flatpak-info does not name the same one"
    }
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    let start = drop { $0 == " " || $0 == "\t" }
    return start.lastIndex { $0 != " " && $0 != "\t" }.map { start[...$0] } ?? ""
  }
}

/// The facts that `PeerOrigin` reads, each at most once.
package protocol ProcessFacts {
  /// The text of `/proc/PID/cgroup`; `nil` if unknown.
  var controlGroups: String? { get }
  /// `nil` if unknown.
  var isInOurUserNamespace: Bool? { get }
  /// The text of `/.flatpak-info` in its root; `nil` if the file does not exist or cannot be read.
  var flatpakInfo: String? { get }
  /// Read last.
  var hasEnded: Bool { get }
}
