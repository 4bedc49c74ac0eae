// SPDX-License-Identifier: Apache-2.0

/// Shapes that have no type of their own, or one that is not only the protocol's.
extension Schema {
  package static let handle = Schema.shared("Handle", .integer(1...(1 << 53 - 1)))

  package static let path = Schema.shared("Path", .array(.string, count: 1...Int.max))

  /// Names an object in a call.
  package static let reference = Schema.shared("Reference", .either([.handle, .path]))

  package static let applicationName: Schema = {
    let first = "[A-Za-z0-9]"
    let others = "[A-Za-z0-9._-]"
    let base = "\(first)\(others){0,\(ApplicationName.baseMax - 1)}"
    let instance = "\(first)\(others){0,\(ApplicationName.instanceMax - 1)}"
    return .shared("ApplicationName", .matching("^\(base)(@\(instance))?$"))
  }()

  package static let timestamp = Schema.shared(
    "Timestamp",
    .matching("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$")
  )

  /// Token of a session, as the broker gives it.
  package static let sessionToken = Schema.shared("SessionToken", .matching("^[0-9a-f]{32}$"))

  package static let uuid = Schema.matching("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

  /// Any object: its keys are the application's.
  package static let state = Schema.shared("State", .map(.any))

  /// Parameters of whichever method.
  package static let parameters = Schema.shared("Parameters", .map(.any))

  /// The answer to whoever still writes what its user has quit (R30).
  package static let discarded = Schema.shared(
    "Discarded",
    .object([
      .required("discarded", .true, "The application was quit by its user while this session lived; nothing is stored.")
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
