// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// Completions from the broker's knowledge.
extension CompletionKind {
  static let applications = known { _, broker in try await broker.applicationNames() }

  /// The next component of a path, as shells complete file names: a slash follows if the path can continue.
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
    let generations = try await broker.call(ListGenerations(), of: application).generations
    return generations.map { String($0.generation) }.reversed()
  }

  static let copies = known { _, broker in
    try await broker.call(ReportReplica()).applications.flatMap(\.conflicts).map(\.application.description)
  }

  static let programs = CompletionKind.custom { (_: [String], _: Int, prefix: String) -> [String] in
    ((try? RunFiles().ids()) ?? []).map(\.description).filter { $0.hasPrefix(prefix) }
  }

  static let methods = known { _, broker in try await MethodCatalogue(broker).methods.map(\.name) }

  /// Methods that a client can call.
  static let calls = known { _, broker in
    try await MethodCatalogue(broker).methods.filter { !$0.isToClient }.map(\.name)
  }

  /// The next key or index of a pointer: a slash follows if the value has parts.
  static let pointers = known { line, broker in
    guard line.prefix.isEmpty || line.prefix.hasPrefix("/"), let application = try await line.application(broker) else {
      return []
    }
    let above = line.prefix[..<(line.prefix.lastIndex(of: "/") ?? line.prefix.endIndex)]
    let pointer = try StatePointer.read(String(above))
    for path in line.operands(after: application).compactMap({ try? IdentifierPath.read($0) }) {
      let edit = StateEdit(application: application, path: path)
      // Keys of a confidential object are as secret as its state.
      guard let state = try await edit.read(broker), !state.isConfidential else { continue }
      return try edit.content(of: state).map { pointer.parts(in: $0) } ?? []
    }
    return []
  }

  /// Words from a running broker. Without one the result is empty, without a message.
  private static func known(
    _ words: @escaping @Sendable (CompletedLine, BrokerConnection) async throws -> [String]
  ) -> CompletionKind {
    .custom { (arguments: [String], _: Int, prefix: String) async -> [String] in
      // A broker that hangs must not hang the shell.
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

private struct CompletedLine: Sendable {
  let words: [String]
  /// The part of the word before the cursor.
  let prefix: String

  var socket: String? {
    let option = "--socket"
    if let joined = words.first(where: { $0.hasPrefix("\(option)=") }) {
      return String(joined.dropFirst(option.count + 1))
    }
    guard let index = words.firstIndex(of: option), words.indices.contains(index + 1) else { return nil }
    return words[index + 1]
  }

  /// The application named on the line: its only word that is the name of one.
  func application(_ broker: BrokerConnection) async throws -> String? {
    let known = Set(try await broker.applicationNames())
    return words.dropFirst(2).first { known.contains($0) }
  }

  /// What may be the path of an object.
  func operands(after application: String) -> [String] {
    words.drop { $0 != application }.dropFirst().filter { !$0.isEmpty && !$0.hasPrefix("-") && !$0.hasPrefix("/") }
  }
}

extension BrokerConnection {
  func applicationNames() async throws -> [String] {
    try await call(ListApplications()).applications.map(\.application.description)
  }
}

extension String {
  /// Whether all shells take the text as one word without quotes. Bash expands completions, so it would execute a name
  /// with `$(…)`, which any application can choose.
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
