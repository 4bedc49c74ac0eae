// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Tells what became of an object when it was last to be saved and restored, step by step.
package struct ExplainRestoration: RestorationMethod {
  package static let method = "explainRestoration"
  package static let summary = "Tells why an object was saved and restored, or was not."
  package static let parameters: [Schema.Member] = [
    .required("object", .reference, "The object."),
    .optional(
      "reveal",
      .boolean,
      "Tell also what may quote the state of a confidential object: names of elements, and messages of clients."
    ),
  ]
  package static let errors: [ErrorDescription] = [.unknownObject, .unknownApplication, .archiveUnreadable]

  package var object: ObjectReference
  /// Whether a confidential object's model identifiers are told, and what clients have said of it.
  package var reveal: Bool

  package init(object: ObjectReference, reveal: Bool = false) {
    self.object = object
    self.reveal = reveal
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    self.object = try reader.reference("object")
    self.reveal = try reader.bool("reveal")
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("object", object)
    writer.member("reveal", ifTrue: reveal)
  }

  /// What it comes to. What went wrong comes before what went well, restoring before saving.
  package enum Verdict: String, CaseIterable, Sendable, JSONWritable {
    /// Its state is withheld, because it has crashed its owner (R31, R35).
    case quarantined
    /// Its state is damaged (R32).
    case unreadable
    /// A restoration is under way and has not decided yet.
    case waiting
    /// Nobody had registered it by the end of the last restoration (R23).
    case absent
    /// The last restoration left it out.
    case skipped
    /// No walk reaches it and nothing saved refers to it: generations leave it out (R4, R5, R7).
    case excluded
    /// There is no state of it.
    case neverSaved
    /// The last round kept an older state of it (R12).
    case stale
    /// It has been restored in this run.
    case restored
    /// Its state is saved.
    case saved
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("path", .nullable(.path), "The object's path; null where it has none (R4)."),
      .required(
        "saved",
        .list(SavingStep.schema),
        "Steps of the last round, and of pushes since, in their order; empty where there was none."
      ),
      .required("restored", .list(RestoringStep.schema), "Steps of the last restoration; empty where there was none."),
      .required("verdict", .openWords(Verdict.self), "What it comes to."),
    ])

    /// Its path now; nil where it has none (R4).
    package var path: IdentifierPath?
    /// Of the last round and of pushes since; empty where there was none since the broker began.
    package var saved: [SavingStep]
    /// Of the last restoration; empty where there was none since the broker began.
    package var restored: [RestoringStep]
    /// A word of `Verdict`; later brokers add words.
    package var verdict: String

    package init(path: IdentifierPath?, saved: [SavingStep], restored: [RestoringStep], verdict: Verdict) {
      self.path = path
      self.saved = saved
      self.restored = restored
      self.verdict = verdict.rawValue
    }

    /// Steps whose words are not known are left out.
    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.path = try reader.optionalPath("path")
        self.saved = try reader.value("saved") { $0.elements?.compactMap { SavingStep($0) } }
        self.restored = try reader.value("restored") { $0.elements?.compactMap { RestoringStep($0) } }
        self.verdict = try reader.string("verdict")
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("path", path)
        writer.member("saved", saved)
        writer.member("restored", restored)
        writer.member("verdict", verdict)
      }
    }
  }
}
