// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// The session's relation to the broker.
public enum SessionState: Hashable, Sendable {
  /// No broker has come yet: calls are answered from memory.
  case withoutBroker
  case connected
  /// The connection was lost at that time; calls wait while the session looks for a broker.
  case reconnecting(since: ContinuousClock.Instant)
  /// Nothing follows.
  case ended(SessionEnding)
}

public enum SessionEnding: Hashable, Sendable {
  /// Ended by `RestorationSession.end`, or with the last reference. If `isConfirmed` is false, the broker may not have
  /// heard the goodbye: then the objects wait for this process, and the session has crashed when the process ends.
  case left(isConfirmed: Bool)
  /// The broker does not resume the session, e.g. because the application has another delegate; or another host has the
  /// application (`fenced`).
  case refused(RestorationError)
}

/// A notification to a session.
public enum SessionNotification: Hashable, Sendable, CountsMissed {
  /// A move or renaming of the object or an ancestor changed its path (R6); `nil` if its own identifier is `nil`.
  case pathChanged(RestorableObject, path: IdentifierPath?)
  /// Another session has taken over the path; this session no longer has the object (R8).
  case registrationReplaced(RestorableObject, path: IdentifierPath, by: ObjectOwner)
  /// The broker had lost the session, and refused to register the object again, mostly because it has another owner
  /// (`duplicatePath`). The session no longer has it.
  case registrationLost(RestorableObject, because: RestorationError)
  /// The broker refused to register the restoration class again, mostly because another session serves it
  /// (`alreadyServed`).
  case restorationClassLost(String, because: RestorationError)
  /// The same for the data source of a view.
  case dataSourceLost(RestorableReference, because: RestorationError)
  /// The application was saved as this generation.
  case applicationStateSaved(generation: Int64)
  /// The saved state was replaced as a whole by this generation; objects may be restored again.
  case headReplaced(generation: Int64)
  /// The object is saved from now on, and the session has no state of it: encode it. Earlier encoded states and
  /// `@Restorable` properties are pushed automatically; an object that answers calls is asked instead.
  case stateWanted(RestorableObject)
  /// Another host has the application since then, if known (R36). The session ends, because a call would take the
  /// application back. If the user returns, start another session, with `takeOver` if the other host does not leave.
  /// The other host lacks `unshipped` changes of this one.
  case archiveLost(host: String?, since: Timestamp?, unshipped: Int64)
  /// `@Restorable` properties of the object were not restored or saved. A refused push is repeated within a second, and
  /// reported once for each reason. A value that cannot be encoded waits for the next write.
  case propertiesFailed(RestorableObject, because: String)
  /// The count of notifications lost because they were not read in time.
  case missed(count: Int)
}
