// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

public struct ObjectRegistration: Hashable, Sendable {
  /// 1–255 bytes of UTF-8 without `/`, `#` and control characters; `nil` excludes a view or view controller and
  /// everything below it (R1, R4).
  public var restorationIdentifier: String?
  /// The parent, which may belong to another process (R1, R3); the identifier is unique below it. `nil` makes a root.
  public var restorationParent: ObjectReference?
  public var kind: ObjectKind
  /// The object's class and its superclasses, own class first; empty switches the class check off (R25).
  public var classes: [String]
  // From here on, `nil` keeps the value recorded for the path.

  /// Name of the restoration class that will make the object again; empty removes it.
  public var restorationClass: String?
  /// Place among siblings with the same identifier; at least 0.
  public var position: Int64?
  /// The systemd user unit whose process restores the object; empty removes it.
  public var storyboardUnit: String?
  /// The timeout for a parent, named by its path, that is not registered yet; `nil` fails at once.
  public var awaitParent: Duration?
  /// Take the path over from another live session (R8).
  public var takeOver: Bool
  /// Tools show the state only when asked to reveal it.
  public var confidential: Bool?
  /// Never retire the state for want of an owner (R13).
  public var keepsForever: Bool?
  /// The object is new: the state that was saved at its path is not its own (R29).
  public var fresh: Bool

  /// Everything else has the protocol's default.
  public init(
    _ restorationIdentifier: String?,
    restorationParent: ObjectReference? = nil,
    kind: ObjectKind = .object,
    classes: [String] = [],
    restorationClass: String? = nil,
    position: Int64? = nil,
    storyboardUnit: String? = nil,
    awaitParent: Duration? = .seconds(10),
    takeOver: Bool = false,
    confidential: Bool? = nil,
    keepsForever: Bool? = nil,
    fresh: Bool = false
  ) {
    (self.restorationIdentifier, self.restorationParent) = (restorationIdentifier, restorationParent)
    (self.kind, self.classes, self.restorationClass) = (kind, classes, restorationClass)
    (self.position, self.storyboardUnit, self.awaitParent) = (position, storyboardUnit, awaitParent)
    (self.takeOver, self.confidential, self.keepsForever) = (takeOver, confidential, keepsForever)
    self.fresh = fresh
  }

  var wire: RegisterObjectForStateRestoration {
    RegisterObjectForStateRestoration().with { message in
      message.restorationIdentifier = restorationIdentifier
      message.restorationParent = restorationParent
      message.kind = kind
      message.classes = classes
      message.restorationClass = restorationClass
      message.position = position
      message.storyboard = storyboardUnit.map { unit in Storyboard().with { $0.unit = unit } }
      if case .path = restorationParent { message.awaitParentMilliseconds = awaitParent?.wholeMilliseconds }
      message.takeOver = takeOver
      message.confidential = confidential
      message.keep = keepsForever.map { $0 ? .forever : .normal }
      message.isFresh = fresh
    }
  }
}

extension Duration {
  /// Rounded up; negative durations count as 0.
  var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let (milliseconds, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
    guard !overflows, milliseconds <= .max - 1_000 else { return .max }
    return milliseconds + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}
