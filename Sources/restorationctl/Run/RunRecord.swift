// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// The broker's record of a program, for people: where it runs, and how it ended. It is written and never read, because
/// the contents of an archive must not be executed.
struct RunRecord: JSONWritable {
  static let application = "org.restorationd.run"

  let id: RunID
  let directory: String
  /// `nil` until it has ended by itself.
  let ending: RunEnding?

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("directory", directory)
      writer.member("exitStatus", ifPresent: ending?.exitStatus.map { Int($0) })
      writer.member("signal", ifPresent: ending?.signal)
    }
  }

  /// Stores the record in the broker. Call it last: it ends the tool if the broker takes longer than five seconds. Its
  /// failure is no failure of the tool.
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
      Output.complain("the broker has no record of \(id): \(failure.message)".printable)
    }
  }
}
