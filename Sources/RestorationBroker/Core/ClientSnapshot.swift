// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// What the next broker has to know of a client, beside what the archive knows of its sessions.
struct ClientSnapshot: StoredFacts, Equatable {
  struct SessionName: WireObject, Equatable {
    var application = ApplicationName.blank
    var token = ""
    /// A detached session that nobody else knows of: it ends with the connection.
    var isOwn = false

    init() {}

    init(application: ApplicationName, token: String, isOwn: Bool = false) {
      self.application = application
      self.token = token
      self.isOwn = isOwn
    }

    mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("application", &application, "")
      try members.required("token", &token, "")
      try members.stored("own", &isOwn)
    }
  }

  /// The session it initialized or resumed.
  var session: SessionName?
  /// That session fetches its calls by `nextRequest`.
  var polls = false
  /// The detached sessions its calls made, one an application.
  var detached: [SessionName] = []
  var subscriptions: [Subscriptions.Entry] = []
  var lastSubscription: Int64 = 0
  var canBeCalled = true
  /// The broker before was killed. Not part of the text.
  var isAfterKill = false

  init() {}

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.stored("canBeCalled", &canBeCalled)
    try members.stored("session", &session)
    try members.stored("polls", &polls, unless: false)
    try members.stored("detached", &detached, unless: [])
    try members.stored("lastSubscription", someCount: &lastSubscription)
    try members.stored("subscriptions", &subscriptions, unless: [])
  }
}
