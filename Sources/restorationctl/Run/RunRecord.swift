// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// What the broker keeps of a program, for people to see: where it runs, and how it ended. It is written and never
/// read: what an archive says must not be run.
struct RunRecord: JSONWritable {
  static let application = "org.restorationd.run"

  let id: RunID
  let directory: String
  /// `nil` as long as it has not ended by itself.
  let ending: RunEnding?

  /// Of the state.
  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("directory", directory)
      writer.member("exitStatus", ifPresent: ending?.exitStatus.map { Int($0) })
      writer.member("signal", ifPresent: ending?.signal)
    }
  }

  /// Hands it to the broker. Comes last: it ends the tool if the broker takes longer than five seconds, and no failure
  /// is one of the tool.
  func keep(_ connection: ConnectionOptions) async throws {
    DetachedThread.start {
      poll(nil, 0, 5_000)
      _exit(0)
    }
    do {
      try await connection.run(about: nil) { broker in
        let state = try RestorableState(jsonText: text.string)
        try await broker.encode(state, for: .path([id.description]), application: Self.application)
      }
    } catch let failure as Failure {
      Output.complain("the broker keeps nothing of \(id): \(failure.message)".printable)
    }
  }
}
