// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Copies a generation into the head and seals that as the next one (R16).
package struct RollBack: RestorationMethod {
  package static let method = "rollBack"
  package static let summary = "Goes back to a generation."
  package static let parameters: [Schema.Member] = [
    .required("generation", .generation, "The generation to go back to."),
    .optional("force", .boolean, "Also while sessions are live."),
    .optional("progressToken", ProgressToken.schema, "Asks for `progress`, which counts objects."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .needsForce, .unknownApplication, .limitExceeded, .archiveUnreadable, .requestCancelled,
    .storeFailed,
  ]

  package var generation: Int64
  /// Needed where live sessions would lose state they did not ask to lose.
  package var force: Bool
  package var progressToken: ProgressToken?

  package init(generation: Int64, force: Bool = false, progressToken: ProgressToken? = nil) {
    self.generation = generation
    self.force = force
    self.progressToken = progressToken
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("generation")
    guard let generation = try reader.optionalInteger("generation", in: 1...Int64.max) else {
      throw reader.wrong("generation", "the number of a generation")
    }
    self.generation = generation
    self.force = try reader.bool("force")
    self.progressToken = try ProgressToken.read(from: reader)
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("generation", generation)
    writer.member("force", ifTrue: force)
    writer.member("progressToken", ifPresent: progressToken)
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("generation", .generation, "The new generation, of kind `rolledBack`, which the head equals now."),
      .required(
        "former",
        .nullable(.generation),
        "The generation that holds what was there before; null where no state was."
      ),
      .required(
        "unreadable",
        .list(.path),
        "Objects whose state in the generation is damaged (R32): they have come back without state."
      ),
    ])

    /// The new generation, which the head now equals.
    package var generation: Int64
    /// The generation that keeps what was at the head before; nil where there was nothing.
    package var former: Int64?
    /// Objects whose state in the old generation is damaged: they are there, without state (R32).
    package var unreadable: [IdentifierPath]

    package init(generation: Int64, former: Int64?, unreadable: [IdentifierPath] = []) {
      self.generation = generation
      self.former = former
      self.unreadable = unreadable
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.generation = try reader.integer("generation")
        self.former = try reader.optionalInteger("former")
        self.unreadable = try reader.list("unreadable") { IdentifierPath($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("generation", generation)
        writer.member("former", former)
        writer.member("unreadable", unreadable)
      }
    }
  }
}
