// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The form of a value, in the constructs that the protocol needs; `rpc.discover` writes it as JSON Schema. Objects are
/// open: they may have further members.
package indirect enum Schema: Sendable {
  case any
  /// Any other form, as members of JSON Schema.
  case keywords(JSONObject)
  case boolean
  case integer(min: Int64?, max: Int64?)
  /// The length is in characters.
  case text(pattern: String?, length: ClosedRange<Int>?)
  /// One of these words. An open set may get more words in later versions.
  case word([String], isOpen: Bool)
  case array(Schema, count: ClosedRange<Int>?)
  /// An object whose names the peer chooses.
  case map(Schema)
  case object([Member])
  /// An object whose members depend on a word in one of them. The set of words is open.
  case tagged(by: String, [(word: String, members: [Member])])
  case nullable(Schema)
  case either([Schema])
  /// A shape that several descriptions share, under this name.
  case shared(String, Schema)

  /// A member of an object, or a parameter of a call.
  package struct Member: Sendable {
    package let name: String
    package let schema: Schema
    package let isRequired: Bool
    /// For people; the protocol's page begins its description with this text.
    package let summary: String

    package static func required(_ name: String, _ schema: Schema, _ summary: String = "") -> Member {
      Member(name: name, schema: schema, isRequired: true, summary: summary)
    }

    /// A member that may be absent. As a parameter it may be null as well, with the same meaning.
    package static func optional(_ name: String, _ schema: Schema, _ summary: String = "") -> Member {
      Member(name: name, schema: schema, isRequired: false, summary: summary)
    }
  }
}

extension Schema {
  package static let string = Schema.text(pattern: nil, length: nil)
  /// Neither empty nor long.
  package static let name = Schema.text(pattern: nil, length: 1...Bounds.nameBytesMax)
  package static let integer = Schema.integer(min: nil, max: nil)
  /// A number or a duration, never negative.
  package static let count = Schema.integer(0...)
  package static let `true` = Schema.constant(.bool(true))
  package static let null = Schema.keywords(["type": "null"])
  /// Any value but null.
  package static let present = Schema.keywords(["not": ["type": "null"]])
  package static let emptyObject = Schema.object([])

  package static func integer(_ range: PartialRangeFrom<Int64>) -> Schema {
    .integer(min: range.lowerBound, max: nil)
  }

  package static func integer(_ range: ClosedRange<Int64>) -> Schema {
    .integer(min: range.lowerBound, max: range.upperBound)
  }

  package static func constant(_ value: JSONValue) -> Schema {
    .keywords(["const": value])
  }

  package static func matching(_ pattern: String) -> Schema {
    .text(pattern: pattern, length: nil)
  }

  package static func list(_ element: Schema) -> Schema {
    .array(element, count: nil)
  }

  package static func words<Word: RawRepresentable<String> & CaseIterable>(_: Word.Type) -> Schema {
    .word(Word.allCases.map(\.rawValue), isOpen: false)
  }

  /// One of the words of `Word`, or a word that a later version adds.
  package static func openWords<Word: RawRepresentable<String> & CaseIterable>(_: Word.Type) -> Schema {
    .word(Word.allCases.map(\.rawValue), isOpen: true)
  }
}

/// Shapes without a type of their own, or whose type other targets share.
extension Schema {
  package static let handle = Schema.shared("Handle", .integer(1...(1 << 53 - 1)))

  package static let path = Schema.shared("Path", .array(.string, count: 1...Int.max))

  package static let reference = Schema.shared("Reference", .either([.handle, .path]))

  package static let applicationName: Schema = {
    let first = "[A-Za-z0-9]"
    let others = "[A-Za-z0-9._-]"
    let base = "\(first)\(others){0,\(ApplicationName.baseMax - 1)}"
    let instance = "\(first)\(others){0,\(ApplicationName.instanceMax - 1)}"
    return .shared("ApplicationName", .matching("^\(base)(@\(instance))?([+]conflict-[1-9][0-9]{0,8})?$"))
  }()

  package static let timestamp = Schema.shared(
    "Timestamp",
    .matching("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$")
  )

  package static let sessionToken = Schema.shared("SessionToken", .matching("^[0-9a-f]{32}$"))

  package static let uuid = Schema.matching("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

  /// Any object; the application chooses its keys.
  package static let state = Schema.shared("State", .map(.any))

  /// Parameters of any method.
  package static let parameters = Schema.shared("Parameters", .map(.any))

  /// The answer to a write after the user quit the application (R30).
  package static let discarded = Schema.shared(
    "Discarded",
    .object([
      .required("discarded", .true, "The user quit the application while this session was live; nothing is stored.")
    ])
  )

  package static let objectClass = Schema.shared(
    "ObjectClass",
    .either([className, .array(className, count: 1...ClassList.countMax)])
  )

  private static let className = Schema.text(pattern: nil, length: 1...ClassList.nameBytesMax)

  package static let elements = Schema.list(RestorableElement.schema)

  package static let generation = Schema.integer(1...)

  package static let identifier = Schema.text(pattern: nil, length: 1...RestorationIdentifier.bytesMax)
}
