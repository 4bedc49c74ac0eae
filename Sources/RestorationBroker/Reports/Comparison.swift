// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// One page of the differences between two contents of an archive.
struct Comparison: Report {
  typealias Contents = (sequence: SequenceNumber, omitted: [NodeID])

  let from: Contents
  let to: Contents
  let place: DiffPlace
  let reveals: Bool
  let bytesMax: Int

  var sequences: [SequenceNumber] { [from.sequence, to.sequence] }

  func run(_ archive: isolated ArchiveSnapshots) async throws(ErrorObject) -> (any JSONWritable & Sendable)? {
    let from = try await GenerationDiff.Side.load(self.from, archive)
    let to = try await GenerationDiff.Side.load(self.to, archive)
    var diff = GenerationDiff(from, to, reveals: reveals)
    let next = try await diff.page(from: place.index, bytesMax: bytesMax, archive)
    var reply = diff.reply
    if let next { reply.cursor = place.cursor(at: next, try await archive.ask { $0.turn.now }) }
    return reply
  }
}

/// The content of a cursor of `diffGenerations`: the beginning of a page, and the contents that all pages compare.
struct DiffPlace {
  /// How long the contents of a page are kept.
  private static let milliseconds: Int64 = 60_000

  /// Names this opening of the archive, and both sides.
  private let names: [Int64]
  /// The sequence that is the head for all pages.
  private(set) var sequence: SequenceNumber
  private(set) var index = 0

  init(of request: DiffGenerations, in application: Application) throws(ErrorObject) {
    names = [application.turn.opening, request.from, request.to ?? 0]
    sequence = application.sequence
    if let cursor = request.cursor { try goOn(from: cursor, at: application.turn.now) }
  }

  func cursor(at index: Int, _ now: Moment) -> String {
    (names + [sequence, Int64(index), now.monotonic]).map { String($0) }.joined(separator: ".")
  }

  private mutating func goOn(from cursor: String, at now: Moment) throws(ErrorObject) {
    let numbers = cursor.split(separator: ".", omittingEmptySubsequences: false).compactMap { Int64($0) }
    guard numbers.count == 6, Array(numbers[..<3]) == names, (0...sequence).contains(numbers[3]), numbers[4] >= 0,
      (0...now.monotonic).contains(numbers[5]), now.monotonic - numbers[5] < Self.milliseconds
    else {
      throw .invalidParameter(
        "/cursor",
        "the cursor is from another call, or expired",
        hint: "Begin again without cursor; a cursor is valid for a minute, with the same from and to."
      )
    }
    (sequence, index) = (numbers[3], Int(clamping: numbers[4]))
  }
}
