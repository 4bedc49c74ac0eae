// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The limits that the broker enforces. A value equal to a limit passes; one more fails.
///
/// Names on the wire and in the configuration equal the property names. `Limit.all` describes each limit; the method
/// `limits`, the configuration and `Protocol/limits.md` share this list.
public struct Limits: Hashable, Sendable {
  public package(set) var frameBytesMax = 4 << 20
  public package(set) var depthMax = 64
  public package(set) var stateDepthMax = 56
  public package(set) var valuesPerFrameMax = 65_536
  public package(set) var keysPerObjectMax = 4_096
  public package(set) var batchMax = 256
  public package(set) var inFlightMax = 128
  public package(set) var parkedMax = 1_024
  public package(set) var subscriptionsMax = 64
  public package(set) var connectionsMax = 1_024
  public package(set) var connectionsPerProcessMax = 128
  public package(set) var waitingBytesPerProcessMax = 32 << 20
  public package(set) var connectionsPerApplicationMax = 256
  public package(set) var sessionsPerProcessMax = 256
  public package(set) var sessionsPerApplicationMax = 1_024
  public package(set) var objectsPerApplicationMax = 16_384
  public package(set) var stateBytesMax = 256 << 10
  public package(set) var pathBytesMax = 4_096
  public package(set) var referencesPerStateMax = 1_024
  public package(set) var archiveBytesMax = 64 << 20
  public package(set) var applicationsMax = 1_024
  public package(set) var allArchivesBytesMax = 1 << 30
  public package(set) var openArchivesMax = 64
  public package(set) var applicationSocketsMax = 64
  public package(set) var replyBytesPause = 1 << 20
  public package(set) var outQueueBytesMax = 8 << 20
  public package(set) var eventBytesMax = 1 << 20
  public package(set) var partialFrameMilliseconds = 30_000
  public package(set) var roundQuietMilliseconds = 15_000
  public package(set) var roundIntervalMilliseconds = 300_000
  public package(set) var stopRoundMilliseconds = 5_000
  public package(set) var descriptorsAccepted = 0
  package init() {}
}

extension Limits: WireValue {
  package static let schema = Schema.shared(
    "Limits",
    .object(
      Limit.all.map { limit in
        let range = Int64(limit.range.lowerBound)...Int64(limit.range.upperBound)
        return .required(limit.name, .integer(range), limit.summary)
      }
    )
  )

  package static let expected = "an object of limits"

  /// A limit that an earlier broker does not report gets its default.
  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.init()
    for limit in Limit.all {
      guard let member = slice[limit.name] else { continue }
      guard let value = try? Int(wire: member) else { throw Misfit(Int.expected, at: limit.name) }
      self[keyPath: limit.keyPath] = value
    }
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      for limit in Limit.all {
        writer.key(limit.name)
        writer.integer(self[keyPath: limit.keyPath])
      }
    }
  }
}

extension Limits {
  public subscript(limit: Limit) -> Int { self[keyPath: limit.keyPath] }

  /// `nil` if the name is unknown.
  public subscript(name: String) -> Int? { Limit.all.first { $0.name == name }.map { self[$0] } }
}

public struct Limit: Sendable {
  public enum Unit: String, Sendable {
    case bytes
    case milliseconds
    case levels
    case count
  }

  public let name: String
  package let keyPath: any WritableKeyPath<Limits, Int> & Sendable
  public let unit: Unit
  /// The values that a configuration may choose.
  public let range: ClosedRange<Int>
  /// The text of `Protocol/limits.md`: what is counted, and the effect beyond the limit.
  public private(set) var summary = ""

  private init(
    _ name: String,
    _ keyPath: any WritableKeyPath<Limits, Int> & Sendable,
    _ unit: Unit,
    _ range: ClosedRange<Int>
  ) {
    (self.name, self.keyPath, self.unit, self.range) = (name, keyPath, unit, range)
  }

  private consuming func described(as summary: String) -> Limit {
    self.summary = summary
    return self
  }

  /// In the order in which `limits` reports them.
  public static let all: [Limit] = [
    Limit("frameBytesMax", \.frameBytesMax, .bytes, 64 << 10...1 << 30)
      .described(
        as: "One frame. A longer frame is skipped and answered with `limitExceeded`, by its id if that was read. A "
          + "state must fit into half of one with its elements and the paths of its references; what would make it "
          + "longer is refused, also a move."
      ),
    Limit("depthMax", \.depthMax, .levels, 16...64)
      .described(as: "Nesting of one frame; `{}` is 1. A deeper frame is skipped and answered in the same way."),
    Limit("stateDepthMax", \.stateDepthMax, .levels, 1...56)
      .described(as: "Nesting of one state; at least 8 levels below `depthMax`."),
    Limit("valuesPerFrameMax", \.valuesPerFrameMax, .count, 1_024...16 << 20)
      .described(as: "JSON values in one frame. A frame with more is skipped and answered in the same way."),
    Limit("keysPerObjectMax", \.keysPerObjectMax, .count, 64...1 << 20)
      .described(as: "Members of one JSON object. A frame with more is skipped and answered in the same way."),
    Limit("batchMax", \.batchMax, .count, 1...65_536)
      .described(as: "Messages in one batch. A longer batch is answered with one error, and nothing of it is done."),
    Limit("inFlightMax", \.inFlightMax, .count, 1...65_536)
      .described(
        as: "Requests of one connection that await their answer. At the limit the broker stops reading requests "
          + "until one is answered; answers to its own calls are still read."
      ),
    Limit("parkedMax", \.parkedMax, .count, 0...65_536)
      .described(as: "Requests of one connection that wait for another client or for a time. They are not in flight."),
    Limit("stateBytesMax", \.stateBytesMax, .bytes, 1_024...256 << 20)
      .described(as: "State and elements of one object as compact text; at most half of `frameBytesMax`."),
    Limit("referencesPerStateMax", \.referencesPerStateMax, .count, 0...65_536)
      .described(as: "References inside one state."),
    Limit("pathBytesMax", \.pathBytesMax, .bytes, 256...65_536)
      .described(
        as: "One path: its components in UTF-8 and one separator byte between two. A move counts the longest path of "
          + "the subtree."
      ),
    Limit("replyBytesPause", \.replyBytesPause, .bytes, 4_096...1 << 30)
      .described(
        as: "Replies that a client has not read yet, and those in the making. Beyond it the broker stops reading its "
          + "requests; replies are never dropped."
      ),
    Limit("outQueueBytesMax", \.outQueueBytesMax, .bytes, 64 << 10...1 << 30)
      .described(
        as: "Notifications and calls of the broker that a client has not read yet. Beyond it the connection is cut."
      ),
    Limit("eventBytesMax", \.eventBytesMax, .bytes, 4_096...1 << 30)
      .described(
        as: "Events that a client has not read yet. Beyond it they are only counted, and `eventsLost` tells how many."
      ),
    Limit("subscriptionsMax", \.subscriptionsMax, .count, 0...1_024)
      .described(as: "Subscriptions of one connection; those of one process are at most four times as many."),
    Limit("partialFrameMilliseconds", \.partialFrameMilliseconds, .milliseconds, 100...86_400_000)
      .described(
        as: "From the first byte of a frame to its last, and of a line that is passed over after a syntax error. Then "
          + "the connection is cut; an idle one may stay for ever."
      ),
    Limit("roundQuietMilliseconds", \.roundQuietMilliseconds, .milliseconds, 0...86_400_000)
      .described(
        as: "Quiet after a change before an automatic save round; 0 for never. Only if a session serves "
          + "`encodeRestorableStateWithCoder`."
      ),
    Limit("roundIntervalMilliseconds", \.roundIntervalMilliseconds, .milliseconds, 0...86_400_000)
      .described(as: "From the first change to an automatic save round despite further changes; 0 for never."),
    Limit("stopRoundMilliseconds", \.stopRoundMilliseconds, .milliseconds, 0...600_000)
      .described(as: "Deadline of the save rounds that a broker runs before it ends; 0 for none."),
    Limit("descriptorsAccepted", \.descriptorsAccepted, .count, 0...0)
      .described(as: "File descriptors a client may pass. The kernel discards any that are sent."),
    Limit("connectionsMax", \.connectionsMax, .count, 1...65_536)
      .described(
        as: "Connections in total. One more is answered with `limitExceeded` and closed. The last tenth is kept for "
          + "processes without a connection."
      ),
    Limit("connectionsPerProcessMax", \.connectionsPerProcessMax, .count, 1...65_536)
      .described(
        as: "Connections of one process. One more is answered with `limitExceeded` and closed; those that a broker "
          + "takes over from the one before stay."
      ),
    Limit("waitingBytesPerProcessMax", \.waitingBytesPerProcessMax, .bytes, 64 << 10...1 << 40)
      .described(
        as: "Requests of one process that have no answer yet, what is held back behind them, and frames that are "
          + "not complete, as memory. Beyond it the broker stops reading from the process until there is less, "
          + "except one connection at a time, to the end of its frame. It also refuses calls that would wait for "
          + "another client or for a time."
      ),
    Limit("connectionsPerApplicationMax", \.connectionsPerApplicationMax, .count, 1...65_536)
      .described(as: "Connections of one application, counted when a connection names it."),
    Limit("sessionsPerApplicationMax", \.sessionsPerApplicationMax, .count, 1...65_536)
      .described(
        as: "Live sessions of one application; a detached one lives for 10 minutes after its last call. The last tenth "
          + "is kept for processes without a session in it."
      ),
    Limit("sessionsPerProcessMax", \.sessionsPerProcessMax, .count, 1...65_536)
      .described(
        as: "Live sessions of one process in all applications; those that a broker takes over from the one before stay."
      ),
    Limit("objectsPerApplicationMax", \.objectsPerApplicationMax, .count, 1...1 << 20)
      .described(as: "Objects of one application, live and archived."),
    Limit("archiveBytesMax", \.archiveBytesMax, .bytes, 64 << 10...1 << 40)
      .described(
        as: "The head of one archive: its states, the texts of its "
          + "objects (identifier, classes, restoration class, storyboard), and once for each different writer "
          + "what its states say of it (classes, role, versions). Everything else that is kept has as much again. "
          + "The texts of the objects of all applications in which one process has sessions have as much together; "
          + "beyond it the process registers nothing more. An archive over a limit that was lowered refuses only "
          + "what makes its head larger."
      ),
    Limit("applicationsMax", \.applicationsMax, .count, 1...1 << 20)
      .described(as: "Applications that have an archive."),
    Limit("allArchivesBytesMax", \.allArchivesBytesMax, .bytes, 64 << 10...1 << 50)
      .described(
        as: "The files of all archives together; beyond it none is made, and no head grows."
      ),
    Limit("openArchivesMax", \.openArchivesMax, .count, 1...4_096)
      .described(
        as: "Archives whose files are open at a time. More may be in use: the files of those that were used least "
          + "recently are closed, and opened again by their next call. Beyond this number, applications without "
          + "sessions leave memory; large ones leave 5 seconds after their last call."
      ),
    Limit("applicationSocketsMax", \.applicationSocketsMax, .count, 0...1_024)
      .described(as: "Sockets that lead to one application each (`openApplicationSocket`)."),
  ]
}
