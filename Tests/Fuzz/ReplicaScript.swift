// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationReplica
internal import RestorationWire
internal import Synchronization

/// A replica whose answers are read as those of a gateway. It either plays a script, or makes one of what another
/// replica answers.
final class ReplicaScript: ForwardingReplica {
  private struct State {
    /// What is still to be played, the next one last.
    var rest: [ArraySlice<UInt8>]
    var recorded: [[UInt8]] = []
  }

  private let state: Mutex<State>
  /// `nil` if a script is played.
  private let base: (any ArchiveReplica)?

  /// Texts that are so long are not a part of a script: they stand in it as `$` and their number.
  private static let textMax = 2_000
  private static let texts = Mutex<[[UInt8]]>([])

  init(playing script: ArraySlice<UInt8>) {
    let lines = script.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).prefix(400)
    state = Mutex(State(rest: lines.reversed()))
    base = nil
  }

  init(recording base: any ArchiveReplica) {
    state = Mutex(State(rest: []))
    self.base = base
  }

  var script: [UInt8] { Array(state.withLock { $0.recorded }.joined(separator: [UInt8(ascii: "\n")])) }

  nonisolated(nonsending) func call<Method: ReplicaMethod>(
    _ method: Method
  ) async throws(ReplicaError) -> Method.Reply {
    guard let base else { return try play(method) }
    do throws(ReplicaError) {
      let reply = try await method.carryOut(on: base)
      record("R", reply.text)
      return reply
    } catch {
      var writer = JSONWriter()
      error.object.write(to: &writer)
      record("E", JSONText(validated: writer.bytes))
      throw error
    }
  }

  private func play<Method: ReplicaMethod>(_ method: Method) throws(ReplicaError) -> Method.Reply {
    let line = state.withLock { $0.rest.popLast() } ?? []
    let text = Self.unfolded(line.dropFirst())
    guard let slice = try? JSONSlice.scan(text, vocabulary: EncodedState.vocabulary, limits: GatewayProtocol.frame)
    else {
      throw ReplicaError(Method.lost, "no answer")
    }
    switch line.first {
    case UInt8(ascii: "R"): return try method.reply(.result(slice))
    case UInt8(ascii: "E"): return try method.reply(.error(slice))
    default: throw ReplicaError(Method.lost, "no answer")
    }
  }

  private func record(_ kind: String, _ text: JSONText) {
    let line = Array(kind.utf8) + Self.folded(Array(text.bytes))
    state.withLock { $0.recorded.append(line) }
  }

  // MARK: Long texts

  private static func folded(_ line: [UInt8]) -> [UInt8] {
    let parts = line.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false).map { part -> [UInt8] in
      guard part.count > textMax else { return Array(part) }
      return texts.withLock { texts in
        texts.append(Array(part))
        return Array("$\(texts.count - 1)".utf8)
      }
    }
    return Array(parts.joined(separator: [UInt8(ascii: "\"")]))
  }

  private static func unfolded(_ line: ArraySlice<UInt8>) -> [UInt8] {
    let parts = line.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false).map { part -> [UInt8] in
      guard part.first == UInt8(ascii: "$"), part.count < 6,
        let number = Int(String(decoding: part.dropFirst(), as: UTF8.self))
      else { return Array(part) }
      return texts.withLock { $0.indices.contains(number) ? $0[number] : Array(part) }
    }
    return Array(parts.joined(separator: [UInt8(ascii: "\"")]))
  }
}
