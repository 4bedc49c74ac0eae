// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Checks everything that is stored of an application, and changes nothing (R32).
package struct VerifyArchive: RestorationMethod {
  package static let method = "verifyArchive"
  package static let summary = "Checks what is stored."
  package static let parameters: [Schema.Member] = [
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts objects."),
  ]
  package static let errors: [ErrorDescription] = [.unknownApplication, .archiveUnreadable, .requestCancelled]

  package var progressToken: ProgressToken?

  package init(progressToken: ProgressToken? = nil) {
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("sound", .boolean, "Nothing is wrong."),
      .required("objects", .count, "Objects at the head."),
      .required("states", .count, "Stored states that were checked, those of generations included."),
      .required("bytes", .count, "Their bytes."),
      .required("problems", .list(ArchiveProblem.schema), "What is wrong, at most 256."),
      .optional("omitted", .count, "How many problems there are besides; absent where all are listed."),
      .required("milliseconds", .count, "How long it took."),
    ])

    /// Whether nothing is wrong.
    package var sound: Bool
    /// Objects at the head.
    package var objects: Int
    /// Stored states that were checked, those of generations included, and their bytes.
    package var states: Int
    package var bytes: Int
    package var problems: [ArchiveProblem]
    /// How many problems there are besides; nil where all are listed.
    package var omitted: Int64?
    package var milliseconds: Int64

    package init(
      sound: Bool,
      objects: Int,
      states: Int,
      bytes: Int,
      problems: [ArchiveProblem],
      omitted: Int64? = nil,
      milliseconds: Int64
    ) {
      self.sound = sound
      self.objects = objects
      self.states = states
      self.bytes = bytes
      self.problems = problems
      self.omitted = omitted
      self.milliseconds = milliseconds
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.sound = try reader.value("sound") { $0.bool() }
        self.objects = try reader.count("objects")
        self.states = try reader.count("states")
        self.bytes = try reader.count("bytes")
        self.problems = try reader.list("problems") { ArchiveProblem($0) }
        self.omitted = try reader.optionalInteger("omitted")
        self.milliseconds = try reader.integer("milliseconds")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("sound", sound)
        writer.member("objects", objects)
        writer.member("states", states)
        writer.member("bytes", bytes)
        writer.member("problems", problems)
        writer.member("omitted", ifPresent: omitted)
        writer.member("milliseconds", milliseconds)
      }
    }
  }
}
