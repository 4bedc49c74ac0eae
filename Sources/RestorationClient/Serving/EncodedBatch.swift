// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension EncodedState {
  /// Levels of an answer above a state in it.
  private static let levelsAbove = 4
  /// Values of an answer besides its one state: the envelope, and the entry's other members.
  private static let valuesAround = 32

  /// A state in the form of an answer. Throws a `RestorationError` if the answer is beyond the frame limits.
  init(_ state: RestorableState, within limits: Limits) throws {
    let frame = FrameLimits(
      frameBytesMax: limits.frameBytesMax / 2,
      depthMax: limits.depthMax - Self.levelsAbove,
      valuesPerFrameMax: limits.valuesPerFrameMax - Self.valuesAround,
      keysPerObjectMax: limits.keysPerObjectMax
    )
    guard
      let slice = try? JSONSlice.scan(Array(state.text.bytes), vocabulary: EncodedState.vocabulary, limits: frame),
      let encoded = EncodedState(slice)
    else {
      try FrameCheck(method: "", parameters: state.text).run(limits)
      throw RestorationError(.limitExceeded("stateBytesMax", max: limits.stateBytesMax, value: state.bytes))
    }
    if let name = slice.duplicateName { throw RestorationError(.duplicateKey(name)) }
    self = encoded
  }
}

/// The answer to a call for states, within the broker's frame limits. The broker would skip a larger answer. So each
/// state is checked on its own, and states beyond half a frame in total are postponed.
struct EncodedBatch {
  private let limits: Limits
  private(set) var states: [EncodedObject] = []
  private var bytes = 0
  private var values = 0

  /// Bytes and values of an entry besides its state.
  private static let entryBytes = 96
  private static let entryValues = 5

  init(limits: Limits) { self.limits = limits }

  /// Whether the answer takes no more states.
  private(set) var isFull = false

  /// Postpones the object's state to another call.
  mutating func putOff(_ object: ObjectHandle) { states.append(EncodedObject(object: object, .later)) }

  mutating func fail(_ object: ObjectHandle, _ error: any Error) {
    states.append(EncodedObject(object: object, .failed(error.shortDescription)))
  }

  /// The state pushed last is current.
  mutating func keep(_ object: ObjectHandle) { states.append(EncodedObject(object: object, .unchanged)) }

  /// Adds a state, or postpones it if it does not fit.
  mutating func add(_ object: ObjectHandle, _ encoded: ObjectState, revision: Int64) {
    do {
      let state = try EncodedState(encoded.state, within: limits)
      let elements = encoded.elements
      let elementValues = elements.reduce(0) { $0 + 6 + $1.indexPath.count }
      let elementBytes = elements.reduce(0) { $0 + 64 + 21 * $1.indexPath.count + 6 * ($1.identifier?.utf8.count ?? 0) }
      let bytes = state.text.count + elementBytes + Self.entryBytes
      let values = state.text.bytes.jsonValuesMax + elementValues + Self.entryValues
      let bytesMax = limits.frameBytesMax / 2
      guard bytes <= bytesMax else {
        throw RestorationError(.limitExceeded("stateBytesMax", max: limits.stateBytesMax, value: bytes))
      }
      // A single state is always sent: it is within the frame limits.
      let isFirst = self.bytes == 0
      guard isFirst || self.bytes + bytes <= bytesMax && self.values + values <= limits.valuesPerFrameMax / 2 else {
        isFull = true
        return putOff(object)
      }
      self.bytes += bytes
      self.values += values
      let encoded = EncodedObject.Encoded().with { ($0.state, $0.elements, $0.revision) = (state, elements, revision) }
      states.append(EncodedObject(object: object, .encoded(encoded)))
    } catch {
      fail(object, error)
    }
  }
}
