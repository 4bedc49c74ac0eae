// SPDX-License-Identifier: Apache-2.0

internal import CPostgres
internal import Glibc
internal import RestorationTransport

/// A connection to one server. It belongs to one thread, which waits for the server up to a deadline.
///
/// It has no state at the server: no prepared statement, setting, lock, or transaction of several calls. Calls are
/// never cancelled, because a server that waits for another one answers a cancelled commit as a success.
final class PostgresConnection {
  private final class Notices {
    /// A commit was not carried out as requested.
    var warning: String?
  }

  private let handle: OpaquePointer
  private let notices = Notices()
  let place: Int
  /// The server's timeline at the time of connecting.
  var timeline: Int64 = 0
  /// Whether another call can be made.
  private(set) var isUsable = true

  /// - Parameter deadline: in the time of `Host.monotonicMilliseconds`.
  init(to endpoint: PostgresEndpoint, at place: Int = 0, until deadline: Int64) throws(PostgresFailure) {
    self.place = place
    // Later options override earlier ones.
    var options = [
      ("application_name", "restoration-gateway"), ("tcp_user_timeout", "2000"), ("dbname", endpoint.conninfo),
    ]
    options += endpoint.options.map { ($0.key, $0.value) }
    options += [("target_session_attrs", "read-write"), ("client_encoding", "UTF8")]
    guard let handle = Self.start(options) else { throw .away("libpq has no memory left") }
    self.handle = handle
    let notices = Unmanaged.passUnretained(self.notices).toOpaque()
    PQsetNoticeReceiver(handle, Self.receive, notices)
    try connect(to: endpoint, until: deadline)
    PQsetnonblocking(handle, 1)
  }

  deinit { PQfinish(handle) }

  private static func start(_ options: [(String, String)]) -> OpaquePointer? {
    let words = options.map { strdup($0.0) }
    let values = options.map { strdup($0.1) }
    defer { for text in words + values { free(text) } }
    let keywords = words.map { UnsafePointer<CChar>($0) } + [nil]
    return PQconnectStartParams(keywords, values.map { UnsafePointer<CChar>($0) } + [nil], 1)
  }

  private func connect(to endpoint: PostgresEndpoint, until deadline: Int64) throws(PostgresFailure) {
    var state = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
    while state != PGRES_POLLING_OK {
      guard state != PGRES_POLLING_FAILED else { throw .away("\(endpoint.name): \(message)") }
      guard wait(for: state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until: deadline) else {
        throw .away("\(endpoint.name) does not answer")
      }
      state = PQconnectPoll(handle)
    }
  }

  private static let receive: PQnoticeReceiver = { argument, result in
    guard let argument, PostgresConnection.text(restoration_pq_severity(result)) == "WARNING" else { return }
    let notices = Unmanaged<Notices>.fromOpaque(argument).takeUnretainedValue()
    notices.warning = PostgresConnection.text(restoration_pq_message(result))
  }

  // MARK: Calls

  /// Whether the server has kept it open; between calls nothing may be readable.
  var isAlive: Bool { isUsable && !wait(for: POLLIN, until: 0) }

  /// Runs calls in one transaction.
  ///
  /// - Returns: the rows of each, after the server has committed.
  func run(_ calls: [PostgresCall], until deadline: Int64) throws(PostgresFailure) -> [[PostgresRow]] {
    notices.warning = nil
    // Until the answer is complete.
    isUsable = false
    // Nothing is committed before the pipeline's end.
    guard PQenterPipelineMode(handle) == 1, calls.allSatisfy(send) else {
      throw .away("the call could not be sent: \(message)")
    }
    let isWrite = calls.contains(where: \.function.isWrite)
    func lost(_ why: String) -> PostgresFailure { isWrite ? .unknown(why) : .away(why) }
    guard PQpipelineSync(handle) == 1 else { throw lost(message) }
    try flush(until: deadline, lost)
    let answers = try answers(until: deadline, lost)
    if isWrite, let warning = notices.warning { throw .unknown("the server warns: \(warning)") }
    guard answers.count == calls.count else { throw lost("answers are missing") }
    isUsable = PQexitPipelineMode(handle) == 1
    return answers
  }

  private func send(_ call: PostgresCall) -> Bool {
    let encoded = call.values.map(\.encoded)
    // In one block of memory; never empty, because an empty one might have no address.
    let content = encoded.reduce(into: [UInt8](), { if let bytes = $1 { $0 += bytes } }) + [0]
    return content.withUnsafeBytes { memory in
      let base = memory.baseAddress?.assumingMemoryBound(to: CChar.self)
      var offset = 0
      let places = encoded.map { bytes -> UnsafePointer<CChar>? in
        guard let bytes else { return nil }
        defer { offset += bytes.count }
        return base.map { $0 + offset }
      }
      return PQsendQueryParams(
        handle,
        call.text,
        Int32(encoded.count),
        call.values.map(\.type),
        places,
        encoded.map { Int32($0?.count ?? 0) },
        encoded.map { _ in 1 },
        1
      ) == 1
    }
  }

  private func flush(until deadline: Int64, _ lost: (String) -> PostgresFailure) throws(PostgresFailure) {
    var unsent = PQflush(handle)
    while unsent == 1 {
      guard wait(for: POLLIN | POLLOUT, until: deadline) else { throw lost("the server takes no more") }
      guard PQconsumeInput(handle) == 1 else { throw lost(message) }
      unsent = PQflush(handle)
    }
    guard unsent == 0 else { throw lost(message) }
  }

  /// Reads until the server reports the end of the transaction: rows alone can arrive before the commit.
  private func answers(
    until deadline: Int64,
    _ lost: (String) -> PostgresFailure
  ) throws(PostgresFailure) -> [[PostgresRow]] {
    var answers: [[PostgresRow]] = []
    var refusal: PostgresFailure?
    var wasBetween = false
    while true {
      while PQisBusy(handle) == 1 {
        guard wait(for: POLLIN, until: deadline) else { throw lost("the server did not answer in time") }
        guard PQconsumeInput(handle) == 1 else { throw lost(message) }
      }
      guard let result = PQgetResult(handle) else {
        // One end separates two calls; two in a row mean that nothing follows.
        guard !wasBetween else { throw lost(message) }
        wasBetween = true
        continue
      }
      defer { PQclear(result) }
      wasBetween = false
      let status = PQresultStatus(result)
      if status == PGRES_PIPELINE_SYNC { break }
      if status == PGRES_TUPLES_OK {
        answers.append(Self.rows(result))
      } else if let state = restoration_pq_state(result), Self.text(restoration_pq_severity(result)) == "ERROR" {
        refusal = .refused(state: Self.text(state), Self.text(restoration_pq_message(result)))
      } else if status != PGRES_PIPELINE_ABORTED {
        // The connection ends, perhaps during the commit.
        throw lost(Self.text(PQresultErrorMessage(result)))
      }
    }
    guard let refusal else { return answers }
    isUsable = PQexitPipelineMode(handle) == 1 && PQstatus(handle) == CONNECTION_OK
    throw refusal
  }

  private static func rows(_ result: OpaquePointer) -> [PostgresRow] {
    (0..<PQntuples(result)).map { row in
      PostgresRow(
        (0..<PQnfields(result)).map { column in
          guard PQgetisnull(result, row, column) == 0, let value = PQgetvalue(result, row, column) else { return nil }
          let count = Int(PQgetlength(result, row, column))
          return Array(UnsafeRawBufferPointer(start: value, count: count))
        }
      )
    }
  }

  /// Whether one of the events came before the deadline.
  private func wait(for events: Int32, until deadline: Int64) -> Bool {
    var entry = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
    while true {
      let count = poll(&entry, 1, Int32(clamping: max(0, deadline - Host.monotonicMilliseconds)))
      if count >= 0 || errno != EINTR { return count > 0 }
    }
  }

  private var message: String { Self.text(PQerrorMessage(handle)) }

  /// In one line.
  private static func text(_ text: UnsafePointer<CChar>?) -> String {
    guard let text else { return "" }
    return String(cString: text).split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}
