// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// What `verifyArchive` found.
public struct ArchiveVerification: Hashable, Sendable {
  /// Whether nothing is wrong.
  public let isSound: Bool
  /// Objects at the head.
  public let objects: Int
  /// Stored states that were checked, those of generations included.
  public let states: Int
  /// Their bytes.
  public let bytes: Int
  /// What is wrong.
  public let problems: [Problem]
  /// How many problems there are that are not in `problems`.
  public let omittedProblems: Int64
  /// How long the check took.
  public let duration: Duration

  /// Something that is wrong with an archive.
  public struct Problem: Hashable, Sendable {
    /// `state`, `text`, `reference`, `object`, `tree` or `file`; later brokers have more words.
    public let kind: String
    /// The object's path, in the generation where one is named; nil where it has none or is not known.
    public let path: [String]?
    /// The newest generation that shows it, where the head does not.
    public let generation: Int64?
    /// For people.
    public let message: String
  }

  init(_ reply: VerifyArchive.Reply) {
    isSound = reply.sound
    objects = reply.objects
    states = reply.states
    bytes = reply.bytes
    problems = reply.problems.map { problem in
      Problem(
        kind: problem.kind,
        path: problem.path?.components,
        generation: problem.generation,
        message: problem.message
      )
    }
    omittedProblems = reply.omitted ?? 0
    duration = .milliseconds(reply.milliseconds)
  }
}

/// A copy of an archive that `backUpArchive` made.
public struct ArchiveBackup: Hashable, Sendable {
  /// The file it was copied to; nil for the archive's own backup copy.
  public let path: String?
  /// Bytes of the copy.
  public let bytes: Int
  /// How long it took.
  public let duration: Duration

  init(_ reply: BackupArchive.Reply) {
    path = reply.to
    bytes = reply.bytes
    duration = .milliseconds(reply.milliseconds)
  }
}

/// What `importArchive` put into an archive.
public struct ImportedArchive: Hashable, Sendable {
  /// Objects of the document.
  public let objects: Int
  /// States among them.
  public let states: Int
  /// Bytes of the states as they are stored.
  public let bytes: Int
  /// The generation that holds what was there before; nil where nothing was.
  public let formerGeneration: Int64?

  init(_ reply: ImportArchive.Reply) {
    objects = reply.objects
    states = reply.states
    bytes = reply.bytes
    formerGeneration = reply.generation
  }
}
