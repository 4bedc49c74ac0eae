// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// What a shell offers of what the broker knows.
extension CompletionKind {
  static let applications = known { _, broker in try await broker.applicationNames() }

  /// The next component of a path, as shells complete names of files: a slash ends one behind which the path goes on.
  static let paths = known { line, broker in
    guard let application = try await line.application(broker) else { return [] }
    let typed = line.prefix.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let path = typed.count > 1 ? IdentifierPath(Array(typed.dropLast())) : nil
    let above = path.map { "\($0)/" } ?? ""
    return try await broker.listPathComponents(of: application, below: path, beginning: typed.last ?? "")
      .map { above + $0.component + ($0.isParent ? "/" : "") }
  }

  static let generations = known { line, broker in
    guard let application = try await line.application(broker) else { return [] }
    return try await broker.listGenerations(of: application).map { String($0.generation) }.reversed()
  }

  static let programs = CompletionKind.custom { (_: [String], _: Int, prefix: String) -> [String] in
    ((try? RunFiles().ids()) ?? []).map(\.description).filter { $0.hasPrefix(prefix) }
  }

  static let methods = known { _, broker in try await MethodCatalogue(broker).methods.map(\.name) }

  /// Words of a broker that runs. Without one nothing is offered, and nothing is said.
  private static func known(
    _ words: @escaping @Sendable (CompletedLine, BrokerConnection) async throws -> [String]
  ) -> CompletionKind {
    .custom { (arguments: [String], _: Int, prefix: String) async -> [String] in
      // A broker that is stopped must not stop the shell.
      let limit = getenv("RESTORATIONCTL_COMPLETION_TIMEOUT").flatMap { try? Seconds.read(String(cString: $0)) }
      DetachedThread.start {
        poll(nil, 0, Int32(limit?.milliseconds ?? 1_000))
        _exit(0)
      }
      let line = CompletedLine(words: arguments, prefix: prefix)
      guard let broker = try? await BrokerConnection.connect(to: line.socket) else { return [] }
      return ((try? await words(line, broker)) ?? []).filter { $0.hasPrefix(prefix) && $0.isPlainInShells }
    }
  }
}

/// A command line that is being typed.
private struct CompletedLine: Sendable {
  let words: [String]
  /// Of the word at the cursor, what is before it.
  let prefix: String

  /// The socket that it names.
  var socket: String? {
    let option = "--socket"
    if let joined = words.first(where: { $0.hasPrefix("\(option)=") }) {
      return String(joined.dropFirst(option.count + 1))
    }
    guard let index = words.firstIndex(of: option), words.indices.contains(index + 1) else { return nil }
    return words[index + 1]
  }

  /// The application that it names: the only word that is the name of one.
  func application(_ broker: BrokerConnection) async throws -> String? {
    let known = Set(try await broker.applicationNames())
    return words.dropFirst(2).first { known.contains($0) }
  }
}

extension BrokerConnection {
  func applicationNames() async throws -> [String] {
    try await listApplications().map(\.application.description)
  }
}

extension String {
  /// Whether all shells take it as one word without quotes. Bash expands what it is offered, so that a name with `$(…)`
  /// in it, which any application can choose, would be run.
  fileprivate var isPlainInShells: Bool {
    guard let first = utf8.first, !"-#".utf8.contains(first), printable == self else { return false }
    return utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), 0x80...:
        true
      default: "._-/#@+,%".utf8.contains(byte)
      }
    }
  }
}
