// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Checks a message against the broker's limits of one frame.
struct FrameCheck {
  let method: String
  let parameters: JSONText

  /// Bytes of a frame besides the method's name and the parameters, with the longest id.
  private static let envelopeBytes = 72

  /// Values of a frame besides the parameters: the object, `jsonrpc`, `id` and `method`.
  private static let envelopeValues = 4

  private var bytes: Int { Self.envelopeBytes + method.utf8.count + parameters.count }

  func passes(_ limits: Limits) -> Bool {
    bytes <= limits.frameBytesMax
      && scans(
        FrameLimits(
          frameBytesMax: limits.frameBytesMax,
          depthMax: limits.depthMax - 1,
          valuesPerFrameMax: limits.valuesPerFrameMax - Self.envelopeValues,
          keysPerObjectMax: limits.keysPerObjectMax
        )
      )
  }

  /// Throws a `RestorationError` with code `limitExceeded` that names the limit.
  func run(_ limits: Limits) throws(RestorationError) {
    if passes(limits) { return }
    guard bytes <= limits.frameBytesMax else {
      throw Self.error("frameBytesMax", limits.frameBytesMax, bytes)
    }
    var frame = FrameLimits.ofAnswers
    frame.depthMax = limits.depthMax - 1
    guard scans(frame) else { throw Self.error("depthMax", limits.depthMax, limits.depthMax + 1) }
    frame.valuesPerFrameMax = limits.valuesPerFrameMax - Self.envelopeValues
    guard scans(frame) else {
      throw Self.error("valuesPerFrameMax", limits.valuesPerFrameMax, limits.valuesPerFrameMax + 1)
    }
    throw Self.error("keysPerObjectMax", limits.keysPerObjectMax, limits.keysPerObjectMax + 1)
  }

  private func scans(_ limits: FrameLimits) -> Bool {
    (try? JSONSlice.scan(Array(parameters.bytes), vocabulary: EncodedState.vocabulary, limits: limits)) != nil
  }

  private static func error(_ limit: String, _ max: Int, _ value: Int) -> RestorationError {
    RestorationError(ErrorObject.limitExceeded(limit, max: max, value: value))
  }
}

extension Limits {
  /// The lowest values a broker can be configured to.
  static let lowest: Limits = {
    var limits = Limits()
    for limit in Limit.all { limits[keyPath: limit.keyPath] = limit.range.lowerBound }
    return limits
  }()
}
