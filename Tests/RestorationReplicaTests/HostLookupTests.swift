// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import RestorationPostgres
internal import TestSupport
internal import Testing

/// How the servers of a connection string are found, with name servers that the test owns.
@Suite(.passesTurnstile) struct HostLookupTests {
  private static let call = PostgresCall(.server, [.integer(1_000)])

  /// Why a call fails; nothing listens at the first port.
  private func failure(
    _ lookup: HostLookup,
    host: String = "db1",
    milliseconds: Int64 = 20_000
  ) async throws -> String {
    var settings = PostgresPool.Settings(conninfo: "host=\(host) port=1 user=host sslmode=disable gssencmode=disable")
    settings.callMilliseconds = milliseconds
    let pool = try PostgresPool(settings, lookup: lookup)
    defer { pool.close() }
    do throws(PostgresFailure) {
      _ = try await pool.run(Self.call, for: "ada")
      return ""
    } catch {
      guard case .away(let why) = error else { throw error }
      return why
    }
  }

  // MARK: What libpq is given

  @Test(
    arguments: [
      ("host=db1,10.0.0.1,::1,/run/postgresql,@abstract,db2", ["db1", nil, nil, nil, nil, "db2"]),
      ("postgresql://u@db1:5433,[fd00::1]:5434/restoration", ["db1", nil]),
      ("host=db1,db2 hostaddr=10.0.0.1,", [nil, "db2"]),
      ("hostaddr=10.0.0.1", [nil]),
      ("dbname=restoration", [nil]),
    ] as [(String, [String?])]
  )
  func onlyNamesWithoutAnAddressAreLookedUp(_ conninfo: String, _ names: [String?]) throws {
    #expect(try PostgresEndpoint.all(of: conninfo).map(\.nameToLookUp) == names)
  }

  @Test func aNameIsRepeatedForEachOfItsAddressesAndStaysTheNameOfTheCertificate() throws {
    var endpoint = try PostgresEndpoint.all(of: "host=db1,db2 port=5433,5434 sslmode=verify-full")[1]
    #expect(endpoint.options == ["host": "db2", "port": "5434"])
    endpoint.addresses = ["10.0.0.1", "fd00::1"]
    #expect(endpoint.options == ["host": "db2,db2", "hostaddr": "10.0.0.1,fd00::1", "port": "5434"])
  }

  // MARK: Looking up

  @Test func theSystemKnowsThisHostByItsNameAndSaysWhatItDoesNotKnow() throws {
    let addresses = try HostLookup.askSystem("localhost").get()
    #expect(addresses.contains { ["127.0.0.1", "::1"].contains($0) }, "\(addresses)")
    #expect(throws: PostgresFailure.self) { try HostLookup.askSystem("two words").get() }
  }

  @Test func allAddressesOfANameAreTriedAndTheNextConnectionAsksAnew() async throws {
    let answers = Shared([["127.0.0.1", "127.0.0.2"], ["127.0.0.3"]])
    let lookup = HostLookup { _ in .success(answers.value.removeFirst()) }
    let first = try await failure(lookup)
    for address in ["127.0.0.1", "127.0.0.2"] { #expect(first.contains(#"at "\#(address)", port 1"#), "\(first)") }
    let second = try await failure(lookup)
    #expect(second.contains(#"at "127.0.0.3", port 1"#) && !second.contains("127.0.0.1"), "\(second)")
  }

  @Test func aNameThatIsUnknownIsSaidAndTheNextServerIsTried() async throws {
    let lookup = HostLookup { $0 == "db1" ? .failure(.away("no db1")) : .success(["127.0.0.1"]) }
    let why = try await failure(lookup, host: "db1,db2")
    #expect(why.contains("no db1") && why.contains(#"db2: connection to server at "127.0.0.1", port 1"#), "\(why)")
  }

  @Test func aNameServerThatNeverAnswersIsAskedOnceAndNoCallWaitsForIt() async throws {
    let (gate, asked) = (DispatchSemaphore(value: 0), Shared(0))
    let lookup = HostLookup { _ in
      asked.value += 1
      gate.wait()
      return .success(["127.0.0.1"])
    }
    for _ in 1...2 {
      let failure = #expect(throws: PostgresFailure.self) { try lookup.addresses(of: "db1", until: Deadline.now + 50) }
      let why = failure.map { "\($0)" } ?? ""
      #expect(why.contains(/the name db1 could not be looked up in \d+ ms/), "\(why)")
    }
    #expect(try await !failure(lookup, milliseconds: 100).isEmpty)
    try Wait.until("it is asked") { asked.value > 0 }
    #expect(asked.value == 1)
    // For the first question, and for one that the next call may put after its answer.
    for _ in 1...2 { gate.signal() }
    #expect(try await failure(lookup).contains(#"db1: connection to server at "127.0.0.1", port 1"#))
  }
}
