// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
package import RestorationWire

/// Facts stored as text, in an archive or for the next broker. A missing or invalid member keeps its default, so that
/// damage or another version affects only that member.
package protocol StoredFacts: WireObject {}

extension StoredFacts {
  package init(stored text: some Collection<UInt8>) {
    self = Self.scan(text).flatMap { Self($0) } ?? Self()
  }

  static func scan(_ text: some Collection<UInt8>) -> JSONSlice? {
    // Limits for peers do not apply to the broker's own text.
    try? JSONSlice.scan(Array(text), vocabulary: EncodedState.vocabulary, limits: .unframed)
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.init()
    var members = StoredMemberReader(MemberReader(.named(slice)))
    try walk(&members)
  }

  package init(stored text: String) { self.init(stored: text.utf8) }

  package var stored: String { text.string }
}

private struct StoredMemberReader: MemberWalk {
  private var reader: MemberReader

  init(_ reader: MemberReader) { self.reader = reader }

  mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    try? reader.required(name, &value, bounds, about)
  }

  mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    try? reader.added(name, &value, bounds, about)
  }

  mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    try? reader.nullable(name, &value, bounds, about)
  }

  mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    try? reader.optional(name, &value, bounds, about)
  }

  mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    default other: @autoclosure () -> Value,
    _ about: StaticString,
    as schema: @autoclosure () -> Schema?
  ) {
    try? reader.member(name, &value, default: other(), about, as: schema())
  }
}

extension MemberWalk {
  /// A member that is always written.
  mutating func stored<Value: WireValue>(_ name: StaticString, _ value: inout Value) throws(Misfit) {
    try added(name, &value, .none, "")
  }

  /// A member that is omitted if it is `nil`.
  mutating func stored<Value: WireValue>(_ name: StaticString, _ value: inout Value?) throws(Misfit) {
    try optional(name, &value, .none, "")
  }

  /// A member that is omitted if it is empty.
  mutating func stored<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    unless empty: Value
  ) throws(Misfit) {
    try member(name, &value, default: empty, "")
  }

  /// A count that is always written.
  mutating func stored(_ name: StaticString, count: inout Int64) throws(Misfit) {
    var stored = StoredCount(count)
    try added(name, &stored, .none, "")
    count = stored.value
  }

  /// A count that is omitted if it is `nil`.
  mutating func stored(_ name: StaticString, count: inout Int64?) throws(Misfit) {
    var stored = count.map { StoredCount($0) }
    try optional(name, &stored, .none, "")
    count = stored?.value
  }

  /// A count that is omitted if it is 0.
  mutating func stored(_ name: StaticString, someCount count: inout Int64) throws(Misfit) {
    var some = count == 0 ? nil : count
    try stored(name, count: &some)
    count = some ?? 0
  }

  /// Nodes as ranges: there may be thousands, and each registration of a fresh object writes the record.
  ///
  /// A range is its first node and its length. Former brokers listed each node.
  mutating func stored(_ name: StaticString, nodes: inout RangeSet<NodeID>, listed: StaticString) throws(Misfit) {
    var ranges = nodes.ranges.flatMap { [$0.lowerBound, $0.upperBound - $0.lowerBound] }
    var list: [NodeID] = []
    try stored(name, &ranges, unless: [])
    try stored(listed, &list, unless: [])
    nodes = RangeSet(list.filter { (0..<NodeID.max).contains($0) }.map { $0..<($0 + 1) })
    for index in stride(from: 0, to: ranges.count - 1, by: 2) {
      let (end, overflows) = ranges[index].addingReportingOverflow(ranges[index + 1])
      if ranges[index] >= 0, ranges[index + 1] > 0, !overflows { nodes.insert(contentsOf: ranges[index]..<end) }
    }
  }

  /// Words in order; unknown words of a later version are skipped.
  mutating func stored<Word: RawRepresentable<String>>(_ name: StaticString, words: inout Set<Word>) throws(Misfit) {
    var texts = words.map(\.rawValue).sorted()
    try added(name, &texts, "")
    words = Set(texts.compactMap { Word(rawValue: $0) })
  }
}

/// A stored count, clamped so that adding to it cannot overflow.
struct StoredCount: WireValue {
  static let schema = Schema.count
  static let expected = Int64.expected

  let value: Int64

  init(_ value: Int64) { self.value = value }

  init(wire slice: JSONSlice) throws(Misfit) { value = min(max(0, try Int64(wire: slice)), 1 << 53) }

  func writeJSON(to writer: inout JSONWriter) { writer.integer(value) }
}
