// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// How a session stands with the broker.
public enum SessionState: Hashable, Sendable {
  /// No broker has come yet, or it has not been told everything: calls are answered from memory.
  case withoutBroker
  /// Calls reach the broker.
  case connected
  /// The connection was lost then, and the broker is looked for; calls wait.
  case reconnecting(since: ContinuousClock.Instant)
  /// The session is over, and nothing follows.
  case ended(SessionEnding)
}

/// How a session ended.
public enum SessionEnding: Hashable, Sendable {
  /// By `RestorationSession.end`, or with the last reference to it. `isConfirmed` tells whether the broker has
  /// acknowledged the goodbye; otherwise it may not have heard it: then the objects wait for this process, and the
  /// session has crashed when the process ends.
  case left(isConfirmed: Bool)
  /// The broker does not take the session back, e.g. because another process is the application's delegate by now; or
  /// another host has the application (`fenced`).
  case refused(RestorationError)
}

/// A notification to a session.
public enum SessionNotification: Hashable, Sendable, CountsMissed {
  /// An object has another path, because it or an ancestor was moved or renamed (R6). The path is `nil` if the
  /// object's own identifier is `nil`.
  case pathChanged(RestorableObject, path: IdentifierPath?)
  /// Another session has taken over the object's path; the object is no longer this session's (R8).
  case registrationReplaced(RestorableObject, path: IdentifierPath, by: ObjectOwner)
  /// The broker had lost the session, and refused to register the object again: most often because it has another owner
  /// meanwhile (`duplicatePath`). It is no longer this session's.
  case registrationLost(RestorableObject, because: RestorationError)
  /// The session was to make the objects of this restoration class, and the broker does not take it back for that: most
  /// often because another session does so meanwhile (`alreadyServed`).
  case restorationClassLost(String, because: RestorationError)
  /// The same for the data source of a view.
  case dataSourceLost(RestorableReference, because: RestorationError)
  /// The application was saved as this generation.
  case applicationStateSaved(generation: Int64)
  /// The saved state was replaced as a whole by this generation; objects may be restored again.
  case headReplaced(generation: Int64)
  /// The object is saved from now on, and what was encoded before was not stored: encode it. A session that answers
  /// calls is asked instead, and `@Restorable` properties are pushed by themselves.
  case stateWanted(RestorableObject)
  /// Another host has the application since then, as far as that is known: its user works there now (R36). The session
  /// ends, because a call or a new connection would take the application from there. If the user is back, start another
  /// one, with `takeOver` if the other host does not leave. Of what was stored here, it lacks so many changes.
  case archiveLost(host: String?, since: Timestamp?, unshipped: Int64)
  /// `@Restorable` properties of the object could not be restored or saved, for the reason given. What the broker did
  /// not save is pushed again, after at most a second, and not reported again for the same reason; what cannot be
  /// encoded goes with the next write.
  case propertiesFailed(RestorableObject, because: String)
  /// So many notifications came faster than they were taken and are lost.
  case missed(count: Int)
}
