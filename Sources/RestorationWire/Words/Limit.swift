// SPDX-License-Identifier: Apache-2.0

/// One row of the list of limits.
public struct Limit: Sendable {
  /// What its values count.
  public enum Unit: String, Sendable {
    case bytes
    case milliseconds
    case levels
    case count
  }

  /// On the wire and in configurations.
  public let name: String
  package let keyPath: any WritableKeyPath<Limits, Int> & Sendable
  /// Of its values.
  public let unit: Unit
  /// What a configuration may choose.
  public let range: ClosedRange<Int>
  /// What is counted and what happens beyond it; a sentence of `Protocol/limits.md`.
  public let summary: String

  private init(
    _ name: String,
    _ keyPath: any WritableKeyPath<Limits, Int> & Sendable,
    _ unit: Unit,
    _ range: ClosedRange<Int>,
    _ summary: String
  ) {
    self.name = name
    self.keyPath = keyPath
    self.unit = unit
    self.range = range
    self.summary = summary
  }

  /// Every limit, in the order in which `limits` reports them.
  public static let all: [Limit] = frames + requests + connections + archives

  private static let frames = [
    Limit(
      "frameBytesMax",
      \.frameBytesMax,
      .bytes,
      64 << 10...1 << 30,
      "One frame. A longer one is skipped and answered with `limitExceeded` and id null."
    ),
    Limit(
      "depthMax",
      \.depthMax,
      .levels,
      16...64,
      "Nesting of one frame; `{}` is 1. A deeper frame is skipped and answered with id null."
    ),
    Limit(
      "stateDepthMax",
      \.stateDepthMax,
      .levels,
      1...56,
      "Nesting of one state by itself; at least 8 levels below `depthMax`."
    ),
    Limit(
      "valuesPerFrameMax",
      \.valuesPerFrameMax,
      .count,
      1_024...16 << 20,
      "JSON values in one frame. A frame with more is skipped and answered with id null."
    ),
    Limit(
      "keysPerObjectMax",
      \.keysPerObjectMax,
      .count,
      64...1 << 20,
      "Members of one JSON object. A frame with more is skipped and answered with id null."
    ),
    Limit(
      "batchMax",
      \.batchMax,
      .count,
      1...65_536,
      "Messages in one batch. A longer batch is answered with one error and none of it is done."
    ),
  ]

  private static let requests = [
    Limit(
      "inFlightMax",
      \.inFlightMax,
      .count,
      1...65_536,
      "Requests of one connection that await their answer. At the limit the broker stops reading requests until one is "
        + "answered; answers to its own calls are still read."
    ),
    Limit(
      "parkedMax",
      \.parkedMax,
      .count,
      0...65_536,
      "Requests of one connection that wait for another client or for a time. They are not in flight."
    ),
    Limit(
      "stateBytesMax",
      \.stateBytesMax,
      .bytes,
      1_024...256 << 20,
      "State and elements of one object as compact text; at most half of `frameBytesMax`."
    ),
    Limit("referencesPerStateMax", \.referencesPerStateMax, .count, 0...65_536, "References inside one state."),
    Limit(
      "pathBytesMax",
      \.pathBytesMax,
      .bytes,
      256...65_536,
      "One path: its components in UTF-8 and one byte between two. A move counts the longest path of the subtree."
    ),
    Limit(
      "replyBytesPause",
      \.replyBytesPause,
      .bytes,
      4_096...1 << 30,
      "Replies that a client has not read yet. Beyond it the broker stops reading its requests; replies are never "
        + "dropped."
    ),
    Limit(
      "outQueueBytesMax",
      \.outQueueBytesMax,
      .bytes,
      64 << 10...1 << 30,
      "Notifications and calls of the broker that a client has not read yet. Beyond it the connection is cut."
    ),
    Limit(
      "eventBytesMax",
      \.eventBytesMax,
      .bytes,
      4_096...1 << 30,
      "Events that a client has not read yet. Beyond it they are not sent but counted, and `eventsLost` tells how many."
    ),
    Limit("subscriptionsMax", \.subscriptionsMax, .count, 0...1_024, "Subscriptions of one connection."),
    Limit(
      "partialFrameMilliseconds",
      \.partialFrameMilliseconds,
      .milliseconds,
      100...86_400_000,
      "From the first byte of a frame to its last. Then the connection is cut; an idle one may stay for ever."
    ),
    Limit(
      "roundQuietMilliseconds",
      \.roundQuietMilliseconds,
      .milliseconds,
      0...86_400_000,
      "Quiet after a change before a save round begins by itself; 0 for never. Only where a session serves "
        + "`encodeRestorableStateWithCoder`."
    ),
    Limit(
      "roundIntervalMilliseconds",
      \.roundIntervalMilliseconds,
      .milliseconds,
      0...86_400_000,
      "From the first change to the save round that begins by itself although it is not quiet; 0 for never."
    ),
    Limit(
      "stopRoundMilliseconds",
      \.stopRoundMilliseconds,
      .milliseconds,
      0...600_000,
      "Deadline of the save rounds that a broker runs when it is told to end; 0 for none."
    ),
    Limit(
      "descriptorsAccepted",
      \.descriptorsAccepted,
      .count,
      0...0,
      "File descriptors a client may pass. The kernel discards what is sent."
    ),
  ]

  private static let connections = [
    Limit(
      "connectionsMax",
      \.connectionsMax,
      .count,
      1...65_536,
      "Connections in all. One more is answered with `limitExceeded` and closed."
    ),
    Limit(
      "connectionsPerApplicationMax",
      \.connectionsPerApplicationMax,
      .count,
      1...65_536,
      "Connections of one application, counted when a connection names it."
    ),
    Limit(
      "sessionsPerApplicationMax",
      \.sessionsPerApplicationMax,
      .count,
      1...65_536,
      "Live sessions of one application; a detached one lives for 10 minutes after its last call."
    ),
  ]

  private static let archives = [
    Limit(
      "objectsPerApplicationMax",
      \.objectsPerApplicationMax,
      .count,
      1...1 << 20,
      "Objects of one application, live and archived."
    ),
    Limit(
      "archiveBytesMax",
      \.archiveBytesMax,
      .bytes,
      64 << 10...1 << 40,
      "States of one archive that a reader can still reach: head, kept generations and what an owner has not decoded."
    ),
    Limit("applicationsMax", \.applicationsMax, .count, 1...1 << 20, "Applications that have an archive."),
    Limit(
      "allArchivesBytesMax",
      \.allArchivesBytesMax,
      .bytes,
      64 << 10...1 << 50,
      "All archives together, when another one is made."
    ),
    Limit(
      "openArchivesMax",
      \.openArchivesMax,
      .count,
      1...4_096,
      "Archives open at a time. When another one is needed, the least recently used one whose sessions can rest is "
        + "closed; only if there is none is one more refused."
    ),
  ]
}
