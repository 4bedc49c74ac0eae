// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import RestorationTransport
internal import Synchronization
internal import SystemdSupport

/// Looks up names of hosts, each on a thread of its own, since the system's function waits for name servers for as long
/// as it likes.
///
/// A name is looked up once at a time, so that there are no more threads than names. All who wait meanwhile get that
/// answer. It is not kept, because after a failover a name may lead to another address.
package final class HostLookup: Sendable {
  /// Asks, and may block for ever.
  package typealias Question = @Sendable (_ name: String) -> Result<[String], PostgresFailure>

  private final class Waiter: Sendable {
    let wakeUp: WakeUp
    let answer = Mutex<Result<[String], PostgresFailure>?>(nil)

    init?() {
      guard let wakeUp = WakeUp() else { return nil }
      self.wakeUp = wakeUp
    }
  }

  private let ask: Question
  /// Who waits, by the names that are being looked up.
  private let waiters = Mutex<[String: [Waiter]]>([:])

  package init(_ ask: @escaping Question = HostLookup.askSystem) { self.ask = ask }

  /// At least one.
  ///
  /// - Parameter deadline: in milliseconds of the monotonic clock.
  package func addresses(of name: String, until deadline: Int64) throws(PostgresFailure) -> [String] {
    let begin = Host.monotonicMilliseconds
    guard let waiter = Waiter() else { throw .away("the system has no descriptor left") }
    let isUnderWay = waiters.withLock { waiters in
      defer { waiters[name, default: []].append(waiter) }
      return waiters[name] != nil
    }
    if !isUnderWay, !BackgroundThread.start("lookup", { self.finish(name, self.ask(name)) }) {
      finish(name, .failure(.away("the system has no thread left")))
    }
    while true {
      if let answer = waiter.answer.withLock(\.self) { return try answer.get() }
      let now = Host.monotonicMilliseconds
      guard now < deadline else {
        waiters.withLock { $0[name]?.removeAll { $0 === waiter } }
        throw .away("the name \(name) could not be looked up in \(now - begin) ms; is its name server there?")
      }
      waiter.wakeUp.wait(milliseconds: Int32(clamping: deadline - now))
    }
  }

  private func finish(_ name: String, _ answer: Result<[String], PostgresFailure>) {
    for waiter in waiters.withLock({ $0.removeValue(forKey: name) ?? [] }) {
      waiter.answer.withLock { $0 = answer }
      waiter.wakeUp.signal()
    }
  }

  /// Whether it is an address already. Asks nobody.
  static func isAddress(_ host: String) -> Bool { (try? find(host, AI_NUMERICHOST).get()) != nil }

  /// In the order in which they are to be tried.
  package static let askSystem: Question = { find($0) }

  private static func find(_ host: String, _ flags: Int32 = 0) -> Result<[String], PostgresFailure> {
    var hints = addrinfo()
    hints.ai_flags = flags
    // Otherwise each address comes once for each type of socket.
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, nil, &hints, &list)
    guard status == 0 else {
      let reason = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
      return .failure(.away("the name \(host) could not be looked up: \(reason)"))
    }
    defer { freeaddrinfo(list) }
    var addresses: [String] = []
    var entry = list
    while let found = entry?.pointee {
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(found.ai_addr, found.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 {
        addresses.append(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
      }
      entry = found.ai_next
    }
    guard !addresses.isEmpty else { return .failure(.away("the name \(host) has no address")) }
    return .success(addresses)
  }
}
