// SPDX-License-Identifier: Apache-2.0

// Adds the object's name to the error.
extension DecodingError {
  func of(_ object: RestorableObject) -> DecodingError {
    func context(_ context: Context) -> Context {
      Context(
        codingPath: context.codingPath,
        debugDescription: "\(context.debugDescription), in the state of \(object)",
        underlyingError: context.underlyingError
      )
    }
    return switch self {
    case .typeMismatch(let type, let given): .typeMismatch(type, context(given))
    case .valueNotFound(let type, let given): .valueNotFound(type, context(given))
    case .keyNotFound(let key, let given): .keyNotFound(key, context(given))
    case .dataCorrupted(let given): .dataCorrupted(context(given))
    @unknown default: self
    }
  }
}

extension EncodingError {
  func of(_ object: RestorableObject) -> EncodingError {
    switch self {
    case .invalidValue(let value, let given):
      let context = Context(
        codingPath: given.codingPath,
        debugDescription: "\(given.debugDescription), in the state of \(object)",
        underlyingError: given.underlyingError
      )
      return .invalidValue(value, context)
    @unknown default: return self
    }
  }
}
