// SPDX-License-Identifier: Apache-2.0

internal import CPostgres

/// One of the servers in a connection string.
package struct PostgresEndpoint: Hashable, Sendable {
  let conninfo: String
  /// Its `host`, `hostaddr` and `port`, as far as the string has them.
  private var place: [String: String] = [:]
  /// Where its name leads, once that was looked up.
  package var addresses: [String] = []

  var name: String { place["host"] ?? place["hostaddr"] ?? "the server" }

  /// A name that libpq would look up, in a call that no deadline ends.
  package var nameToLookUp: String? {
    guard place["hostaddr", default: ""].isEmpty, let host = place["host"], let first = host.first else { return nil }
    // Libpq takes these for directories of sockets.
    return "/@".contains(first) || HostLookup.isAddress(host) ? nil : host
  }

  /// What libpq is given beside the connection string. With a name's addresses it has the name too, which is that of
  /// the server's certificate.
  package var options: [String: String] {
    guard !addresses.isEmpty else { return place }
    // Libpq takes one address for a name, and one port for all of them.
    let names = repeatElement(name, count: addresses.count).joined(separator: ",")
    return place.merging(["host": names, "hostaddr": addresses.joined(separator: ",")]) { $1 }
  }

  /// In the string's order.
  package static func all(of conninfo: String) throws(PostgresFailure) -> [Self] {
    // Libpq's message may contain a part of the password.
    guard let options = PQconninfoParse(conninfo, nil) else {
      throw .away("it is not a connection string of libpq; try it with psql; write % as %25 in a URI")
    }
    defer { PQconninfoFree(options) }
    var lists: [String: [String]] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      let name = String(cString: keyword)
      if let value = option.pointee.val, ["host", "hostaddr", "port"].contains(name) {
        lists[name] = String(cString: value).split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      }
      option += 1
    }
    guard lists["port", default: []].allSatisfy({ $0.isEmpty || UInt16($0) != nil }) else {
      throw .away("a port is not a number; write @, : and / in a password of a URI as %40, %3A and %2F")
    }
    let count = max(1, lists["host"]?.count ?? 0, lists["hostaddr"]?.count ?? 0)
    return (0..<count).map { index in
      var endpoint = Self(conninfo: conninfo)
      // A single port applies to all hosts.
      for (name, list) in lists { endpoint.place[name] = index < list.count ? list[index] : list[0] }
      return endpoint
    }
  }
}
