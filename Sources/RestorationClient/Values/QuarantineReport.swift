// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What is held against an application's states after crashes (R31, R35).
public struct QuarantineReport: Hashable, Sendable {
  /// One object whose state is suspected, withheld, or was.
  public struct Object: Hashable, Sendable {
    /// How it stands with an object; later brokers know more words.
    public struct Standing: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
      /// The word on the wire.
      public let rawValue: String

      /// A word of any kind.
      public init(rawValue: String) {
        self.rawValue = rawValue
      }

      /// The word on the wire.
      public var description: String { rawValue }

      /// Its state is withheld from its owner.
      public static let quarantined = Standing(rawValue: QuarantinedObject.Standing.quarantined.rawValue)
      /// A crash may be due to its state, which is handed out by itself.
      public static let suspect = Standing(rawValue: QuarantinedObject.Standing.suspect.rawValue)
      /// A newer state has taken the place of the withheld one, which is kept.
      public static let lifted = Standing(rawValue: QuarantinedObject.Standing.lifted.rawValue)
    }

    /// Its handle; nil where nobody claims it now.
    public let object: Int64?
    /// Its path; nil where its own identifier is nil (R4).
    public let path: [String]?
    /// How it stands with it.
    public let standing: Standing
    /// Crashes in a row that its state was found guilty of.
    public let strikes: Int
    /// Whether its state is shown only when asked for.
    public let confidential: Bool
    /// Whether that is why texts are left out.
    public let redacted: Bool
    /// The states that are or were withheld, oldest first.
    public let states: [State]
  }

  /// A state that is or was withheld.
  public struct State: Hashable, Sendable {
    /// Number of the write.
    public let sequence: Int64
    /// Since when.
    public let quarantined: SavedTime
    /// Nil where it is redacted or unreadable.
    public let state: RestorableState?
    /// Selected and topmost elements written with it.
    public let elements: [RestorableElement]
    /// Who wrote it; nil where that is not known.
    public let origin: StateOrigin?
    /// Whether it cannot be read any more (R32).
    public let unreadable: Bool
  }

  /// When the archive as a whole was put into quarantine; nil where it is not.
  public let archive: SavedTime?
  /// Crashes in a row for which no object was found guilty.
  public let strikes: Int
  /// In the order in which they were first registered.
  public internal(set) var objects: [Object]
}

extension QuarantineReport {
  init(_ wire: ListQuarantine.Reply) {
    archive = wire.archive.map(SavedTime.init)
    strikes = wire.strikes
    objects = wire.objects.map(Object.init)
  }
}

extension QuarantineReport.Object {
  init(_ wire: QuarantinedObject) {
    object = wire.object
    path = wire.path?.components
    standing = Standing(rawValue: wire.standing.rawValue)
    strikes = wire.strikes
    confidential = wire.confidential
    redacted = wire.redacted
    states = wire.states.map(QuarantineReport.State.init)
  }
}

extension QuarantineReport.State {
  init(_ wire: QuarantinedState) {
    sequence = wire.sequence
    quarantined = SavedTime(wire.quarantined)
    state = wire.state.map(RestorableState.init)
    elements = RestorableElement.read(wire.elements) ?? []
    origin = wire.coder.flatMap(StateOrigin.init)
    unreadable = wire.unreadable
  }
}

// `application` names the application on a connection without a session; with one it is left out.
extension BrokerConnection {
  /// What is withheld from its owners because it ended in crashes, and what is suspected of it. Reads all pages.
  ///
  /// - Parameter reveal: show the states of confidential objects.
  public func listQuarantine(of application: String? = nil, reveal: Bool = false) async throws -> QuarantineReport {
    let first = try await perform(ListQuarantine().with { $0.reveal = reveal }, application: application)
    var report = QuarantineReport(first)
    var cursor = first.cursor
    while let next = cursor {
      let call = ListQuarantine().with {
        $0.cursor = next
        $0.reveal = reveal
      }
      let page = try await perform(call, application: application)
      report.objects += page.objects.map(QuarantineReport.Object.init)
      cursor = page.cursor
    }
    return report
  }

  /// Hands out again what was withheld, and forgets what it was suspected of.
  ///
  /// - Parameter path: the object; nil releases everything, the archive as a whole included.
  /// - Returns: how many objects' states were withheld until now.
  @discardableResult
  public func releaseQuarantine(of path: [String]? = nil, application: String? = nil) async throws -> Int {
    let call = ReleaseQuarantine().with { message in
      message.path = path.map { IdentifierPath($0) }
    }
    return try await perform(call, application: application).released
  }
}
