// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

/// The origin of a state: class and reserved keys of its writer (R10, R25). Equal origins are stored once, and states
/// carry their number.
package struct StateOrigin: StoredFacts, Hashable {
  /// The declared class of the writer and its superclasses; empty if it declared none.
  package var classes: [String] = []
  package var role: String?
  package var bundleVersion: String?
  package var userInterfaceIdiom = ReservedKeys.unspecifiedIdiom
  package var systemVersion: String?
  /// Only for a view controller from a storyboard.
  package var storyboard: String?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("idiom", &userInterfaceIdiom)
    try members.stored("classes", &classes, unless: [])
    try members.stored("role", &role)
    try members.stored("bundleVersion", &bundleVersion)
    try members.stored("systemVersion", &systemVersion)
    try members.stored("storyboard", &storyboard)
  }

  package func reservedKeys(timestamp: Int64) -> ReservedKeys {
    ReservedKeys().with {
      $0.bundleVersion = bundleVersion
      $0.userInterfaceIdiom = userInterfaceIdiom
      $0.timestamp = Timestamp(milliseconds: timestamp)
      $0.systemVersion = systemVersion
      $0.storyboard = storyboard
    }
  }
}

extension StateOrigin {
  /// Parses the classes in a node's record, which are JSON text.
  static func classes(inText text: String) -> [String] {
    ((try? JSONCodec.parse(Array(text.utf8)))?.array ?? []).compactMap(\.string)
  }

  static func text(ofClasses classes: [String]) -> String? {
    classes.isEmpty ? nil : JSONText(.array(classes.map { .string($0) })).string
  }
}

/// The coder's text of an origin, without the time.
struct CoderTemplate {
  private let form: [UInt8]
  /// Offset of the time; `nil` if the text has none.
  private let time: Int?

  var bytes: Int { form.count }

  init(_ origin: StateOrigin) {
    let bytes = Array(origin.reservedKeys(timestamp: 0).text.bytes)
    let key = Array("\"\(ReservedKeys.timestampKey)\":\"".utf8)
    // Clients cannot use the reserved key, so its first occurrence is the broker's.
    time = bytes.indices.first { bytes[$0...].starts(with: key) }.map { $0 + key.count }
    form = bytes
  }

  func write(_ written: Int64, to writer: inout JSONWriter) {
    writer.text(form) { bytes, start in
      if let time { Timestamp(milliseconds: written).put(into: &bytes, at: start + time) }
    }
  }
}
