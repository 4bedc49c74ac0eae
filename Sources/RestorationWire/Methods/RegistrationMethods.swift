// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

package struct RegisterObjectForStateRestoration: RestorationMethod {
  package static let method = "registerObjectForStateRestoration"
  package static let summary = "Registers an object and gives it a handle."
  package static let errors: [ErrorCode] = [
    .invalidIdentifier, .unknownParent, .duplicatePath, .requestCancelled, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  /// Exact in every language's numbers.
  package static let positionMax: Int64 = 1 << 53 - 1

  /// A day; for longer waits the client repeats the call.
  package static let awaitParentMillisecondsMax: Int64 = 86_400_000

  package typealias Reply = RegisteredObject

  /// `nil` excludes the object and everything below it (R4).
  package var restorationIdentifier: String?
  package var restorationParent: ObjectReference?
  package var kind = ObjectKind.object
  package var classes: [String] = []
  /// Here and below `nil` keeps the recorded value; an empty value removes it.
  package var restorationClass: String?
  package var position: Int64?
  package var storyboard: Storyboard?
  package var awaitParentMilliseconds: Int64?
  package var takeOver = false
  package var confidential: Bool?
  package var keep: Keep?
  package var isFresh = false
  package init() {}

  package init(_ parameters: Parameters) throws(ErrorObject) { try self.init(walking: parameters) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "restorationIdentifier",
      &restorationIdentifier,
      .identifier,
      "The identifier (R1). Null or absent excludes the object (R4)."
    )
    try members.optional(
      "restorationParent",
      &restorationParent,
      "The parent that scopes the identifier; absent or null makes a root (R1, R3)."
    )
    try members.member("kind", &kind, default: .object, "What the object is.")
    try members.optional(
      "objectClass",
      classes: &classes,
      "The class, or the class and its superclasses, own class first; at most 64 names of 1 to 255 bytes (R25)."
    )
    try members.optional(
      "restorationClass",
      &restorationClass,
      .bytes(0...Bounds.nameBytesMax),
      "The class that recreates the object; at most 1,024 bytes (R22, R23). Empty removes it."
    )
    try members.optional(
      "position",
      &position,
      .range(0...Self.positionMax),
      "Position of the object in its container; becomes part of the path: `identifier#position`."
    )
    try members.optional("storyboard", &storyboard, "The systemd user unit whose process restores the object.")
    try members.optional(
      "awaitParentMilliseconds",
      &awaitParentMilliseconds,
      .range(0...Self.awaitParentMillisecondsMax),
      "How long to wait for a parent that is not registered yet."
    )
    try members.flag("takeOver", &takeOver, "Claim the path even if another live session has it (R8).")
    try members.optional("confidential", &confidential, "Tools show the state only if they ask with `reveal`.")
    try members.optional("keep", &keep, "Never retire the state, however long it stays unclaimed (R13).")
    try members.flag("fresh", &isFresh, "The object is new: nothing that was saved at its path is its own (R29).")
  }

  package enum Keep: String, WireWord {
    case forever, normal
  }
}

/// Removes an object from its application, with its state unless `keepState` (R3, R13).
public struct UnregisterObject: RestorationMethod {
  package static let method = "unregisterObject"
  package static let summary = "Removes an object."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .notOwner, .replaced, .unknownApplication, .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  public var object = ObjectReference.blank
  public var keepState = false
  public var generations = false
  package init() {}

  public init(object: ObjectReference, keepState: Bool = false, generations: Bool = false) {
    (self.object, self.keepState, self.generations) = (object, keepState, generations)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session, or a vacant path.")
    try members.flag("keepState", &keepState, "Keep the state; the object becomes an orphan (R13).")
    try members.flag("generations", &generations, "Remove the generations as well, which may hold the state.")
  }
}

/// Gives the children of a container the positions 0…n−1 in one step (R6).
public struct SetChildren: RestorationMethod {
  package static let method = "setChildren"
  package static let summary = "Gives children their positions."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .notOwner, .replaced, .invalidParams, .duplicatePath, .limitExceeded,
    .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  public var object = ObjectReference.blank
  public var children: [ObjectReference] = []
  package init() {}

  public init(object: ObjectReference, children: [ObjectReference]) {
    (self.object, self.children) = (object, children)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The container; of this session.")
    try members.required("children", &children, "Children in order; each gets its index as position, 0 … n−1.")
  }

  public struct Reply: WireObject, Hashable {
    public package(set) var paths: [IdentifierPath?] = []
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("paths", &paths, "Paths of the children from now on, in the order they were given.")
    }
  }
}

/// Gives an object another identifier; it moves with everything below it (R4, R6).
public struct SetRestorationIdentifier: RestorationMethod {
  package static let method = "setRestorationIdentifier"
  package static let summary = "Renames or excludes an object."
  package static let errors: [ErrorCode] = [
    .unknownObject, .notOwner, .replaced, .invalidIdentifier, .duplicatePath, .limitExceeded, .archiveUnreadable,
    .storeFailed,
  ]
  package static let mayBeDiscarded = true

  public typealias Reply = ObjectPlacement

  public var object = ObjectReference.blank
  /// `nil` excludes the object and everything below it (R4).
  public var restorationIdentifier: String?
  /// `nil` leaves the object without a position.
  public var position: Int64?
  public var takeOver = false
  package init() {}

  public init(object: ObjectReference, restorationIdentifier: String?, position: Int64? = nil, takeOver: Bool = false) {
    (self.object, self.restorationIdentifier) = (object, restorationIdentifier)
    (self.position, self.takeOver) = (position, takeOver)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session.")
    try members.required(
      "restorationIdentifier",
      &restorationIdentifier,
      .identifier,
      "The new identifier; null excludes the object and everything below it (R4)."
    )
    try members.optional(
      "position",
      &position,
      .range(0...RegisterObjectForStateRestoration.positionMax),
      "The new position; if absent, the object has none."
    )
    try members.flag(
      "takeOver",
      &takeOver,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    )
  }
}

/// Moves an object and everything below it under another parent, or makes it a root (R6).
public struct SetRestorationParent: RestorationMethod {
  package static let method = "setRestorationParent"
  package static let summary = "Moves a subtree under another parent."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .notOwner, .replaced, .unknownParent, .parentCycle, .duplicatePath,
    .limitExceeded,
    .archiveUnreadable, .storeFailed,
  ]
  package static let mayBeDiscarded = true

  public var object = ObjectReference.blank
  /// `nil` makes the object a root.
  public var restorationParent: ObjectReference?
  public var takeOver = false
  package init() {}

  public init(object: ObjectReference, restorationParent: ObjectReference?, takeOver: Bool = false) {
    (self.object, self.restorationParent, self.takeOver) = (object, restorationParent, takeOver)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, "The object; of this session.")
    try members.required("restorationParent", &restorationParent, "The new parent; null makes the object a root.")
    try members.flag(
      "takeOver",
      &takeOver,
      "Displace what is in the way: a live owner (R8), or the state of a vacant path (R6)."
    )
  }

  public struct Reply: WireObject, Hashable {
    public package(set) var path: IdentifierPath?
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.nullable("path", &path, "The path from now on; null if the object's own identifier is null.")
    }
  }
}

/// Says that this session makes the objects of a restoration class (R9, R22, R23).
public struct RegisterRestorationClass: RestorationMethod {
  package static let method = "registerRestorationClass"
  package static let summary = "Registers the session that makes a class's objects."
  package static let errors: [ErrorCode] = [.alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable]
  package static let mayBeDiscarded = true

  public var restorationClass = ""
  public var isShared = false
  package init() {}

  public init(restorationClass: String, isShared: Bool = false) {
    (self.restorationClass, self.isShared) = (restorationClass, isShared)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("restorationClass", &restorationClass, .name, "The class, compared byte by byte.")
    try members.flag("shared", &isShared, "Other sessions may make objects of this class as well (R9).")
  }
}

/// Makes this session the data source of a view (R9, R28).
public struct RegisterDataSource: RestorationMethod {
  package static let method = "registerDataSource"
  package static let summary = "Registers the session as data source of a view."
  package static let errors: [ErrorCode] = [
    .unknownObject, .invalidIdentifier, .alreadyServed, .invalidRequest, .limitExceeded, .archiveUnreadable,
  ]
  package static let mayBeDiscarded = true

  public var view = ObjectReference.blank
  package init() {}

  public init(view: ObjectReference) { self.view = view }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("view", &view, "The view; live, vacant, or known from the archive.")
  }
}
