// SPDX-License-Identifier: Apache-2.0

/// The text of one validated frame or document, with the notes of the scan; shared by all its slices.
final class FrameStorage: Sendable {
  /// The validated value lies at the offsets of `tape[0]`; bytes after its end mean nothing.
  let bytes: [UInt8]

  /// The upper levels of the value in the order of the text, the value itself first.
  let tape: [TapeEntry]

  /// The references in the text, outermost only, in the order of the text.
  let references: [TapeReference]

  init(bytes: [UInt8], tape: [TapeEntry], references: [TapeReference]) {
    (self.bytes, self.tape, self.references) = (bytes, tape, references)
  }

  var root: JSONSlice { JSONSlice(storage: self, entry: 0) }
}

/// One value noted by the scan. Offsets count from the start of the frame.
struct TapeEntry: Sendable {
  /// The member name between its quotes; empty for elements.
  var nameStart: Int32
  var nameEnd: Int32
  var start: Int32
  var end: Int32
  /// The index of the entry after this one and all entries inside it.
  var next: Int32
  var depth: UInt16
  var kind: JSONKind
  var flags: TapeFlags

  /// Offsets fit: a frame has less than 2^31 bytes.
  @inline(always)
  init(name: Range<Int>, value: Range<Int>, next: Int, kind: JSONKind, flags: TapeFlags) {
    nameStart = Int32(truncatingIfNeeded: name.lowerBound)
    nameEnd = Int32(truncatingIfNeeded: name.upperBound)
    start = Int32(truncatingIfNeeded: value.lowerBound)
    end = Int32(truncatingIfNeeded: value.upperBound)
    self.next = Int32(truncatingIfNeeded: next)
    depth = 0
    (self.kind, self.flags) = (kind, flags)
  }
}

struct TapeFlags: OptionSet, Sendable {
  let rawValue: UInt8

  static let escapedName = TapeFlags(rawValue: 1)
  static let whiteSpace = TapeFlags(rawValue: 2)
  static let children = TapeFlags(rawValue: 4)
  /// Two names in the object may be equal; without this mark they all differ.
  static let repeatedNames = TapeFlags(rawValue: 8)
}

/// A reference object. Offsets count from the start of the frame.
struct TapeReference: Sendable {
  let start: Int32
  let end: Int32
  /// The closing quote of the reference key; its value follows.
  let nameEnd: Int32
}
