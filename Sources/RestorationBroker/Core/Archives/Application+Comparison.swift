// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Comparing generations.
extension Application {
  func diffGenerations(_ request: DiffGenerations, by session: Session?, for caller: Caller) throws(ErrorObject) {
    try turn.requireWritable()
    var place = ComparisonPlace(of: request, in: self)
    if let cursor = request.cursor { place = try place.going(on: cursor, at: turn.now) }
    let from = try generation(request.from, "/from")
    let to = try request.to.map { number throws(ErrorObject) in try generation(number, "/to") }
    let comparison = Comparison(
      Comparison.Side(sequence: from.sequence, omitted: from.record.omitted),
      Comparison.Side(sequence: to?.sequence ?? place.sequence, omitted: to?.record.omitted ?? []),
      at: place.index,
      reveals: request.reveal,
      bytesMax: Application.pageBytes(for: session?.facts.messageBytesMax),
      LongCall(caller, by: session, token: request.progressToken, at: turn.now)
    )
    jobs.begin(.comparison(comparison, place), comparison.first, for: caller, in: &turn)
  }

  /// A piece was read.
  func goOn(
    with comparison: inout Comparison,
    from place: ComparisonPlace,
    _ outcome: StoreJob.Outcome,
    _ job: StoreJob
  ) {
    let need: Comparison.Need
    switch outcome {
    case .nodes(let nodes): need = comparison.take(nodes)
    case .states(let states): need = comparison.take(states)
    case .checked, .copied: need = .nothing(next: nil)
    }
    let (done, total) = comparison.progress
    var step: StoreJob.Step?
    var cursor: String?
    switch need {
    case .read(let next): step = next
    case .nothing(let next): cursor = next.map { place.cursor(at: $0, turn.now) }
    }
    let progress = comparison.call.progress(done, of: total, isLast: step == nil, at: turn.now)
    tell(progress, of: comparison.call)
    if let step { return jobs.goOn(with: .comparison(comparison, place), step, job, in: &turn) }
    var reply = comparison.reply
    reply.cursor = cursor
    turn.ask(.respond(job.caller, .result(reply)))
  }
}

/// Where a page of `diffGenerations` begins, and what all pages compare; the content of a cursor.
package struct ComparisonPlace {
  /// How long the contents of a page are kept.
  private static let milliseconds: Int64 = 60_000

  /// Names this opening of the archive, and both sides.
  private let names: [Int64]
  /// The sequence that is the head for all pages.
  private(set) var sequence: SequenceNumber
  private(set) var index = 0

  init(of request: DiffGenerations, in application: Application) {
    names = [application.turn.opening, request.from, request.to ?? 0]
    sequence = application.sequence
  }

  func cursor(at index: Int, _ now: Moment) -> String {
    (names + [sequence, Int64(index), now.monotonic]).map { String($0) }.joined(separator: ".")
  }

  /// The place that a cursor names.
  func going(on cursor: String, at now: Moment) throws(ErrorObject) -> ComparisonPlace {
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
    var place = self
    place.sequence = numbers[3]
    place.index = Int(clamping: numbers[4])
    return place
  }
}
