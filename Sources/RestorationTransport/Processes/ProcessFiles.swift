// SPDX-License-Identifier: Apache-2.0

/// A process's facts from `/proc`. A fact that is missing even for our own process, because the kernel does not have
/// it, is taken to be the same for all.
package struct ProcessFiles: ProcessFacts {
  private let process: ProcessHandle

  private static let groupBytesMax = 8 << 10
  private static let infoBytesMax = 64 << 10
  private static let ourUserNamespace = try? SystemCalls.status(ofTarget: userNamespace(of: "self"))
  private static let hasGroups = (try? SystemCalls.status(of: groups(of: "self"))) != nil

  private static func userNamespace(of process: String) -> String { "/proc/\(process)/ns/user" }
  private static func groups(of process: String) -> String { "/proc/\(process)/cgroup" }

  package init(_ process: ProcessHandle) { self.process = process }

  package var controlGroups: String? {
    Self.hasGroups ? Self.contents(of: Self.groups(of: "\(process.pid)"), bytesMax: Self.groupBytesMax) : ""
  }

  package var isInOurUserNamespace: Bool? {
    guard let ours = Self.ourUserNamespace else { return true }
    if let namespace = try? SystemCalls.status(ofTarget: Self.userNamespace(of: "\(process.pid)")) {
      return namespace.isSameFile(as: ours)
    }
    // An untraceable process, such as a keeper of passwords, hides its namespaces, but not this file. All users are in
    // the first namespace only; any other namespace could be ours or not.
    let map = Self.contents(of: "/proc/\(process.pid)/uid_map", bytesMax: Self.groupBytesMax)
    return map?.split(whereSeparator: \.isWhitespace) == ["0", "0", "4294967295"] ? true : nil
  }

  package var flatpakInfo: String? { Self.flatpakInfo(inRoot: "/proc/\(process.pid)/root") }

  package var hasEnded: Bool { process.hasExited }

  package static func flatpakInfo(inRoot root: String) -> String? {
    contents(of: "\(root)/.flatpak-info", bytesMax: infoBytesMax)
  }

  /// `nil` also if the file is not regular, or longer.
  private static func contents(of path: String, bytesMax: Int) -> String? {
    let bytes = try? SystemCalls.contents(of: path, bytesMax: bytesMax + 1, followsLink: false)
    return bytes.flatMap { $0.count <= bytesMax ? String(decoding: $0, as: UTF8.self) : nil }
  }
}

extension PeerOrigin {
  /// Looks up one name and reads one small file of `/proc`; two small files of a Flatpak. Never waits.
  package init(of peer: PeerCredentials) {
    if let process = peer.process {
      self.init(of: ProcessFiles(process))
    } else {
      self = .unclear(.ended)
    }
  }
}
