// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// JSON texts of values that a schema admits, and of values that it does not.
extension Schema {
  /// Values at its bounds, and each of its words and forms.
  var samples: [String] {
    switch self {
    case .any: [#"{"k":[1.5]}"#]
    case .keywords(let object): [object["const"].map { JSONText($0).string } ?? #"{"message":"m"}"#]
    case .boolean: ["true", "false"]
    case .integer(let min, let max): ["\(min ?? .min)", "\(max ?? .max)"]
    case .text(let pattern?, _): [Self.matches[pattern] ?? ""]
    case .text(nil, let length?): [Self.text(length.lowerBound), Self.text(length.upperBound)]
    case .text(nil, nil): [#""é/\u0000\"""#, #""""#]
    case .word(let words, _): words.map { "\"\($0)\"" }
    case .array(let element, let count): Self.arrays(of: element.samples, count)
    case .map(let value): ["{}", #"{"a/b~c":\#(value.samples[0])}"#]
    case .object(let members): Self.objects(members)
    case .tagged(let tag, let forms):
      forms.flatMap { form in Self.objects([.required(tag, .constant(.string(form.word)))] + form.members) }
    case .nullable(let schema): schema.samples + ["null"]
    case .either(let schemas): schemas.flatMap(\.samples)
    case .shared(_, let schema): schema.samples
    }
  }

  /// Values of another kind or out of bounds, if readers check that.
  var misfits: [String] {
    switch self {
    // Their texts are passed on unchanged.
    case .shared("Coder", _), .shared("ArchiveDocument", _), .array(.shared("Element", _), _): []
    // A later broker has more of them.
    case .shared("ServedMethod", _): ["7"]
    case .shared("Timestamp", _), .shared("ApplicationName", _): ["7", #""-""#]
    case .any, .tagged: []
    case .keywords(let object): object["const"]?.bool == nil ? [] : ["7"]
    case .boolean: ["7", #""true""#]
    case .integer(let min, let max):
      [#""7""#, "1.5"] + [min.map { "\($0 - 1)" }, max.map { "\($0 + 1)" }].compactMap { $0 }
    case .text(nil, let length?):
      ["7", Self.text(length.upperBound + 1)] + (length.lowerBound > 0 ? [Self.text(length.lowerBound - 1)] : [])
    case .text, .word(_, isOpen: true): ["7"]
    case .word(_, isOpen: false): ["7", #""nope""#]
    case .array(let element, let count):
      ["7", "{}"] + (count.map { $0.lowerBound > 0 ? ["[]"] : [] } ?? []) + element.misfits.map { "[\($0)]" }
    case .map(.any): []
    case .map(let value): ["7", "[]"] + value.misfits.map { #"{"k":\#($0)}"# }
    case .object: ["7", "[]"]
    case .nullable(let schema): schema.misfits
    case .either: ["true"]
    case .shared(_, let schema): schema.misfits
    }
  }

  /// Whether null is a value.
  var admitsNull: Bool {
    switch self {
    case .any, .nullable: true
    default: false
    }
  }

  private static let matches: [String: String] = [
    patterns(of: .timestamp): #""2026-02-28T09:05:00.042Z""#,
    patterns(of: .applicationName): #""org.example.App@2""#,
    patterns(of: .sessionToken): #""0123456789abcdef0123456789abcdef""#,
    "^/": #""/var/backups/a.json""#,
    patterns(of: .uuid): #""01234567-89ab-cdef-0123-456789abcdef""#,
  ]

  private static func patterns(of schema: Schema) -> String {
    switch schema {
    case .text(let pattern?, _): pattern
    case .shared(_, let schema): patterns(of: schema)
    default: ""
    }
  }

  private static func text(_ count: Int) -> String { "\"\(String(repeating: "x", count: count))\"" }

  /// One array of all samples, or a single sample twice, because a single class is written as a name.
  private static func arrays(of samples: [String], _ count: ClosedRange<Int>?) -> [String] {
    let elements = samples.count == 1 ? samples + samples : samples
    return ["[\(elements.joined(separator: ","))]"] + ((count?.lowerBound ?? 0) == 0 ? ["[]"] : [])
  }

  /// Every member is present; the objects together contain each sample of each member.
  private static func objects(_ members: [Member]) -> [String] {
    let samples = members.map(\.schema.samples)
    return (0..<(samples.map(\.count).max() ?? 1)).map { index in
      let texts = zip(members, samples).map { member, samples in
        "\"\(member.name)\":\(samples[index % samples.count])"
      }
      return "{\(texts.joined(separator: ","))}"
    }
  }
}
