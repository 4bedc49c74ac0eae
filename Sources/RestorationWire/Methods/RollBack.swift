// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Copies a generation into the head and seals that as the next one (R16).
package struct RollBack: RestorationMethod {
  package static let method = "rollBack"
  package static let parameterNames = ["generation", "force", "progressToken"]

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
