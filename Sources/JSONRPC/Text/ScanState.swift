// SPDX-License-Identifier: Apache-2.0

/// The next expected token. The parts of an object's member are in this order.
enum ScanPhase: UInt8, Comparable {
  /// After `{`: a name or `}`.
  case firstName
  /// After `[`: a value or `]`.
  case firstElement
  /// After `,` in an object.
  case name
  case colon
  /// A value; its prefix has been read.
  case value
  /// After a value: `,` or the end of the container.
  case separator
  case insideName, insideString, insideNumber

  var isInsideToken: Bool { self == .insideName || self == .insideString || self == .insideNumber }

  static func < (left: ScanPhase, right: ScanPhase) -> Bool { left.rawValue < right.rawValue }
}

/// The position of a scan between two arrivals of bytes. Offsets count from the start of the frame.
struct ScanState {
  var phase = ScanPhase.value
  var number = NumberPhase.start
  var inObject = false
  /// Whether the current string has an escape.
  var escaped = false
  var nameEscaped = false
  /// The next byte to look at.
  var at = 0
  var depth = 0
  /// Values in at most this many containers are noted on the tape.
  var notedDepth = 0
  /// Deepest nesting within the innermost noted container.
  var deepest = 0
  /// How many values may still begin.
  var valuesLeft = 0
  /// Bytes of insignificant white space passed.
  var whiteSpace = 0
  /// The first byte of the current string or number.
  var token = 0
  /// The last name, between its quotes.
  var nameStart = 0
  var nameEnd = 0
  var noted = 0
}

struct ScanLevel {
  var start: Int32 = 0
  /// Its entry on the tape, or −1.
  var entry: Int32 = -1
  /// How many members may still begin.
  var namesLeft: Int32 = 0
  /// `ScanState.whiteSpace` and `.deepest` at its beginning; for noted containers only.
  var whiteSpace: Int32 = 0
  var deepest: Int32 = 0
  /// The closing quote of its reference key.
  var referenceName: Int32 = 0
  var marks: ScanMarks = []
  /// Bloom filter of its names; for noted containers only.
  var filter: (low: UInt64, high: UInt64) = (0, 0)
}

struct ScanMarks: OptionSet {
  let rawValue: UInt8

  static let object = ScanMarks(rawValue: 1)
  static let reference = ScanMarks(rawValue: 2)
  static let literal = ScanMarks(rawValue: 4)
}

enum ScanOutcome: Equatable, Sendable {
  /// The value ended before `ScanState.at`.
  case complete
  case needsBytes
  /// The tape or the stack of levels is full.
  case needsRoom
  /// A name that may be in the vocabulary has ended.
  case name
  /// An object with a name of the vocabulary has ended; its level lies just above the open ones.
  case markedObject
  case syntax(ScanFault)
  /// A limit would be exceeded by the token at `ScanState.at`.
  case limit(ScanLimit)
}

enum ScanLimit: Equatable, Sendable {
  case depth, valuesPerFrame, keysPerObject
}

enum ScanFault: Error {
  case unexpectedByte
  case controlCharacter, invalidUTF8, invalidEscape, loneSurrogate
  case invalidNumber, invalidLiteral

  /// One sentence without a full stop; `phase` is what was expected.
  func message(expecting phase: ScanPhase) -> String {
    switch self {
    case .unexpectedByte:
      switch phase {
      case .value, .firstElement: "a value was expected"
      case .name, .firstName: "a member name in quotes was expected"
      case .colon: "a colon was expected"
      case .separator, .insideName, .insideString, .insideNumber:
        "a comma or the end of the object or array was expected"
      }
    case .controlCharacter: "a control character in a string must be escaped"
    case .invalidUTF8: "a string is not valid UTF-8"
    case .invalidEscape: "unknown escape in a string"
    case .loneSurrogate: "half a surrogate pair in a string"
    case .invalidNumber: "a number is malformed"
    case .invalidLiteral: "the only literals are true, false and null"
    }
  }
}
