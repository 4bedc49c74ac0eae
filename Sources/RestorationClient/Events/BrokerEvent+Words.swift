// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

extension BrokerEvent {
  /// What an event is about; later brokers know more names.
  public struct Name: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name on the wire.
    public let rawValue: String

    /// A name of any kind; the broker refuses those it does not know.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    private init(_ wire: EventName) {
      rawValue = wire.rawValue
    }

    /// The name on the wire.
    public var description: String { rawValue }

    /// A session was opened.
    public static let sessionBegan = Name(.sessionBegan)
    /// A session ended, and with it the registrations of its objects (R30).
    public static let sessionEnded = Name(.sessionEnded)
    /// An object was registered (R1).
    public static let objectRegistered = Name(.objectRegistered)
    /// The registration of an object ended while its session goes on.
    public static let objectUnregistered = Name(.objectUnregistered)
    /// An object was moved, and everything below it with it (R6).
    public static let pathChanged = Name(.pathChanged)
    /// The state of an object was stored.
    public static let stateEncoded = Name(.stateEncoded)
    /// An encode that nobody waited for stored nothing.
    public static let encodeFailed = Name(.encodeFailed)
    /// A generation was sealed (R16).
    public static let generationSealed = Name(.generationSealed)
    /// An archive was opened or made.
    public static let archiveOpened = Name(.archiveOpened)
    /// An archive that nobody needs now was closed.
    public static let archiveClosed = Name(.archiveClosed)
    /// An archive was found damaged and set aside (R32).
    public static let archiveDamaged = Name(.archiveDamaged)
    /// An archive is there and could not be opened (R20).
    public static let archiveUnreadable = Name(.archiveUnreadable)
    /// A document took the place of what an archive held.
    public static let archiveImported = Name(.archiveImported)
    /// The saved state of an application was discarded (R30).
    public static let applicationDiscarded = Name(.applicationDiscarded)
    /// A process ended abnormally while it was still taking in what it had been handed (R31).
    public static let restorationCrashed = Name(.restorationCrashed)
    /// The state of an object is withheld from now on (R35).
    public static let stateQuarantined = Name(.stateQuarantined)
    /// All states of an application are withheld from now on (R31).
    public static let archiveQuarantined = Name(.archiveQuarantined)
    /// States are not withheld any more (R35).
    public static let quarantineEnded = Name(.quarantineEnded)
    /// So many events came faster than they were taken, and are lost: ask how things are. Comes to every subscription.
    public static let eventsLost = Name(.eventsLost)

    /// Those that this version knows, in the protocol's order.
    public static let known = EventName.allCases.map { Name($0) }
  }

  /// How a session ended; later brokers know more words.
  public struct Ending: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The word on the wire.
    public let rawValue: String

    /// A word of any kind.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    private init(_ wire: SessionEnded.Ending) {
      rawValue = wire.rawValue
    }

    /// The word on the wire.
    public var description: String { rawValue }

    /// By goodbye: its objects are over.
    public static let closed = Ending(.closed)
    /// By goodbye: the user quit.
    public static let userQuit = Ending(.userQuit)
    /// By goodbye: the process comes back.
    public static let restart = Ending(.restart)
    /// By goodbye: the user's session ends.
    public static let logout = Ending(.logout)
    /// The service manager stopped the process's unit.
    public static let stopped = Ending(.stopped)
    /// The process ended without a goodbye.
    public static let crashed = Ending(.crashed)
    /// It was not used any more, or its process began another one.
    public static let expired = Ending(.expired)
  }

  /// What caused an event; later brokers know more words.
  public struct Cause: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The word on the wire.
    public let rawValue: String

    /// A word of any kind.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// The word on the wire.
    public var description: String { rawValue }

    /// `objectUnregistered`: its session unregistered it.
    public static let unregistered = Cause(rawValue: ObjectUnregistered.Cause.unregistered.rawValue)
    /// `objectUnregistered`: another session claimed the path (R8).
    public static let replaced = Cause(rawValue: ObjectUnregistered.Cause.replaced.rawValue)
    /// `quarantineEnded`: a newer state was stored.
    public static let encoded = Cause(rawValue: QuarantineEnded.Cause.encoded.rawValue)
    /// `quarantineEnded`: somebody asked for it.
    public static let released = Cause(rawValue: QuarantineEnded.Cause.released.rawValue)
    /// `applicationDiscarded`: somebody asked for it.
    public static let discarded = Cause(rawValue: ApplicationDiscarded.Cause.discarded.rawValue)
    /// `applicationDiscarded`: the user quit the application.
    public static let userQuit = Cause(rawValue: ApplicationDiscarded.Cause.userQuit.rawValue)
  }
}
