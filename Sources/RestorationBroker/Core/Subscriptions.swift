// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationWire

package struct Subscriber: Hashable, Sendable {
  package let client: ClientID
  package let number: Int64

  package init(client: ClientID, number: Int64) { (self.client, self.number) = (client, number) }
}

struct Subscriptions {
  struct Entry: WireObject, Equatable {
    var number: Int64 = 0
    /// `nil` for all events.
    var names: Set<EventName>?
    /// `nil` for all applications.
    var application: ApplicationName?

    init() {}

    init(_ number: Int64, names: Set<EventName>?, application: ApplicationName?) {
      (self.number, self.names, self.application) = (number, names, application)
    }

    mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      var count = StoredCount(number)
      try members.required("number", &count, "")
      number = count.value
      var words = names?.map(\.rawValue).sorted()
      try members.stored("events", &words)
      names = words.map { Set($0.compactMap { EventName(rawValue: $0) }) }
      try members.stored("application", &application)
    }
  }

  private var entries: [ClientID: [Entry]] = [:]
  /// The applications, without instance, that clients are confined to.
  private var confinements: [ClientID: String] = [:]
  /// Clients with subscriptions to all applications, and to one, in order of subscription.
  private var general: [ClientID] = []
  private var particular: [ApplicationName: [ClientID]] = [:]
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  var held: Int { count + entries.count + confinements.count + general.count + particular.count }

  /// Throws if the connection has `subscriptionsMax` subscriptions, or all of its process have four times as many: each
  /// event is written for every one of them.
  func requireRoom(for client: Client, among clients: some Sequence<Client>, _ limits: Limits) throws(ErrorObject) {
    try Self.require(entries(of: client.id).count + 1, atMost: limits.subscriptionsMax)
    guard let process = client.process else { return }
    let all = clients.reduce(0) { $0 + ($1.process == process ? entries(of: $1.id).count : 0) }
    try Self.require(all + 1, atMost: 4 * limits.subscriptionsMax)
  }

  private static func require(_ count: Int, atMost max: Int) throws(ErrorObject) {
    guard count <= max else { throw .limitExceeded("subscriptionsMax", max: max, value: count) }
  }

  func entries(of client: ClientID) -> [Entry] { entries[client] ?? [] }

  func contains(_ subscriber: Subscriber) -> Bool {
    entries[subscriber.client]?.contains { $0.number == subscriber.number } ?? false
  }

  mutating func add(
    _ subscriber: Subscriber,
    to names: Set<EventName>?,
    of application: ApplicationName?,
    within confinement: String? = nil
  ) {
    count += 1
    confinements[subscriber.client] = confinement
    entries[subscriber.client, default: []].append(Entry(subscriber.number, names: names, application: application))
    if let application {
      if particular[application]?.contains(subscriber.client) != true {
        particular[application, default: []].append(subscriber.client)
      }
    } else if !general.contains(subscriber.client) {
      general.append(subscriber.client)
    }
  }

  mutating func remove(_ subscriber: Subscriber) -> Bool {
    guard let index = entries[subscriber.client]?.firstIndex(where: { $0.number == subscriber.number }),
      let entry = entries[subscriber.client]?.remove(at: index)
    else { return false }
    count -= 1
    let isLast = entries[subscriber.client]?.contains { $0.application == entry.application } != true
    if isLast { forget(subscriber.client, entry.application) }
    if entries[subscriber.client]?.isEmpty == true { entries[subscriber.client] = nil }
    return true
  }

  mutating func removeAll(of client: ClientID) {
    confinements[client] = nil
    guard let removed = entries.removeValue(forKey: client) else { return }
    count -= removed.count
    for entry in removed { forget(client, entry.application) }
  }

  private mutating func forget(_ client: ClientID, _ application: ApplicationName?) {
    guard let application else { return general.removeAll { $0 == client } }
    particular[application]?.removeAll { $0 == client }
    if particular[application]?.isEmpty == true { particular[application] = nil }
  }

  func subscribers(to name: EventName, of application: ApplicationName) -> [Subscriber] {
    var found: [Subscriber] = []
    var general = general
    if !confinements.isEmpty {
      let base = application.base
      general.removeAll { confinements[$0].map { $0 != base } ?? false }
    }
    collect(general, name, nil, into: &found)
    if let clients = particular[application] { collect(clients, name, application, into: &found) }
    return found
  }

  private func collect(
    _ clients: [ClientID],
    _ name: EventName,
    _ application: ApplicationName?,
    into found: inout [Subscriber]
  ) {
    for client in clients {
      for entry in entries[client] ?? [] where entry.application == application {
        if entry.names?.contains(name) ?? true { found.append(Subscriber(client: client, number: entry.number)) }
      }
    }
  }
}

package struct Announcement: Sendable {
  /// When the event may be sent. It always waits for the changes before it, so that events come in order.
  package enum Condition: Sendable {
    /// Once they are durable; never if the transaction fails, because then the event has not happened (R15).
    case stored
    /// Only if the transaction fails.
    case notStored
    /// Once they are durable or have failed: the event has happened in any case.
    case settled
  }

  /// The announcement if the changes before it are lost; `nil` if there is none.
  var lost: Announcement? {
    if case .stored = condition { return nil }
    return Announcement(application: application, event: event, condition: .settled, recipients: recipients)
  }

  package let application: ApplicationName
  package let event: any RestorationEvent
  package let condition: Condition
  package let recipients: [Subscriber]

  package init(
    application: ApplicationName,
    event: any RestorationEvent,
    condition: Condition,
    recipients: [Subscriber]
  ) {
    (self.application, self.event, self.condition) = (application, event, condition)
    self.recipients = recipients
  }
}

extension CoreContext {
  var hasSubscribers: Bool { !subscriptions.isEmpty }

  func announce<Event: RestorationEvent>(
    _ id: ApplicationID,
    _ application: ApplicationName,
    _ condition: Announcement.Condition,
    _ event: () -> Event
  ) {
    let recipients = subscriptions.subscribers(to: Event.name, of: application)
    guard !recipients.isEmpty else { return }
    emit(
      .announce(
        id,
        Announcement(application: application, event: event(), condition: condition, recipients: recipients)
      )
    )
  }
}
