// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// A method of the gateway: its words, and the meaning of a lost answer.
package protocol GatewayMethod: RestorationMethod {
  static var lost: ReplicaError.Kind { get }

  /// Whether the gateway answers or fails within `GatewayProtocol.briefMilliseconds`.
  static var isBrief: Bool { get }

  /// Throws if a valid reply does not answer this call.
  func check(_ reply: Reply) throws(Misfit)
}

extension GatewayMethod {
  package static var isScoped: Bool { false }
  package static var lost: ReplicaError.Kind { .unknown }
  package static var isBrief: Bool { false }
  package func check(_: Reply) {}

  /// The gateway's time for a call, from its arrival on.
  static var milliseconds: Int64 { isBrief ? GatewayProtocol.briefMilliseconds : GatewayProtocol.callMilliseconds }

  /// The checked reply: it comes from outside, and its numbers can be relied upon afterwards.
  package func reply(_ outcome: Response.Outcome) throws(ReplicaError) -> Reply {
    switch outcome {
    case .result(let slice):
      do throws(Misfit) {
        let reply = try Reply(wire: slice)
        try check(reply)
        return reply
      } catch {
        let fault = error.invalidParameter(at: error.place).message
        let text =
          "the gateway's answer to \(Self.method) cannot be used: \(fault); see to it that the gateway is sound"
        throw ReplicaError(Self.lost, text)
      }
    case .error(let slice): throw ReplicaError(slice, lost: Self.lost)
    }
  }

  /// Reads the parameters. An unknown member is refused, because it would have no effect.
  package init(exactly parameters: Parameters) throws(ErrorObject) {
    if case .named(let object) = parameters {
      let known = Self.members.map(\.name)
      if let name = object.members?.first(where: { !known.contains($0.name) })?.name {
        let hint = known.isEmpty ? "\(Self.method) has no members." : "Give only \(known.joined(separator: ", "))."
        throw .invalidParameter("/\(JSONPointer.escaped(name))", "\(Self.method) has no member \(name)", hint: hint)
      }
    }
    try self.init(parameters)
  }
}

/// A function of a replica as a message: the gateway carries it out, `ForwardingReplica` sends it.
package protocol ReplicaMethod: GatewayMethod {
  /// The archive concerned: calls of one archive run one after the other.
  var application: String? { get }

  nonisolated(nonsending) func carryOut(on replica: any ArchiveReplica) async throws(ReplicaError) -> Reply
}

package enum GatewayMethods {
  /// All that the gateway forwards to the database. It refuses every other name but `attach`.
  package static let forwarded: [any ReplicaMethod.Type] = [
    Acquire.self, Renew.self, Append.self, Load.self, Snapshot.self, Release.self, List.self,
  ]

  static func named(_ name: String) -> (any ReplicaMethod.Type)? { forwarded.first { $0.method == name } }
}

/// Introduces the broker; the first call of a connection. The kernel identifies the user.
package struct Attach: GatewayMethod {
  package static let method = "attach"
  package static let summary = "Says which broker calls."
  /// The replica has not been asked yet.
  package static let lost = ReplicaError.Kind.away
  package static let isBrief = true

  package var version = 0
  package var broker = ""
  package var term: Int64 = 0
  package var host: String?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("version", &version, "The version of this protocol: 1.")
    try members.required("broker", &broker, .role, "A random text of its process; the same on all connections.")
    try members.required("term", &term, .range(1_000...86_400_000), "For how long its leases hold; milliseconds.")
    try members.optional("host", &host, .role, "The host's name; that which the gateway knows if it is left out.")
  }

  package struct Reply: WireObject {
    package var version = 0
    package var user = ""
    package init() {}

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("version", &version, "The version that both speak.")
      try members.required("user", &user, "Whose archives these are.")
    }
  }
}

package struct Acquire: ReplicaMethod {
  package static let method = "acquire"
  package static let summary = "Takes the lease of an archive."

  package var name = ""
  package var claim = ReplicaClaim(reader: 0)
  package init() {}

  package typealias Reply = ReplicaGrant
  package var application: String? { name }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("application", &name, .role, "The application.")
    try members.required("reader", &claim.reader, "The newest version of contents that the broker reads.")
    try members.optional("standing", &claim.standing, "What the host has noted of its copy.")
    try members.flag("wants", &claim.wants, "Whether the holder is told, so that it leaves.")
    try members.flag("isForced", &claim.isForced, "Whether the holder loses it, alive or not.")
  }

  package func check() throws(Misfit) {
    guard ApplicationName(name)?.isSetAside == false else { throw Misfit(ApplicationName.expected, at: "application") }
  }

  package func check(_ reply: ReplicaGrant) throws(Misfit) {
    guard reply.lease.application == name else { throw Misfit("the application \(name)", at: "lease/application") }
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> ReplicaGrant { try await replica.acquire(name, as: claim) }
}

package struct Renew: ReplicaMethod {
  package static let method = "renew"
  package static let summary = "Says that the broker is alive."
  package static let lost = ReplicaError.Kind.away

  package init() {}

  package var application: String? { nil }

  package struct Reply: CheckedWireObject {
    package var held: [Held] = []
    package init() {}

    package struct Held: WireObject {
      package var lease = ReplicaLease()
      package var sequence: SequenceNumber = 0
      package var wanted: String?
      package init() {}

      package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
        try members.required("lease", &lease, "A lease of the broker.")
        try members.required("sequence", &sequence, .sequence, "Where the contents end.")
        try members.optional("wanted", &wanted, .role, "The host that waits for it.")
      }
    }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("held", &held, "All leases of the broker, and where their contents end.")
    }

    package func check() throws(Misfit) {
      let max = ReplicaListing.archivesMax
      guard held.count <= max else { throw Misfit("a list of at most \(max) leases", at: "held") }
    }

    init(_ renewal: ReplicaRenewal) {
      held = renewal.held.sorted { $0.key.application < $1.key.application }.map { lease, end in
        Held().with { ($0.lease, $0.sequence, $0.wanted) = (lease, end, renewal.wanted[lease]) }
      }
    }

    package var renewal: ReplicaRenewal {
      held.reduce(into: ReplicaRenewal()) { renewal, held in
        (renewal.held[held.lease], renewal.wanted[held.lease]) = (held.sequence, held.wanted)
      }
    }
  }

  nonisolated(nonsending) package func carryOut(on replica: any ArchiveReplica) async throws(ReplicaError) -> Reply {
    Reply(try await replica.renew())
  }
}

package struct Append: ReplicaMethod {
  package static let method = "append"
  package static let summary = "Stores a batch behind the contents."
  package static let isBrief = true

  package var lease = ReplicaLease()
  package var batch = ReplicaBatch()
  package init() {}

  package var application: String? { lease.application }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "The lease of the archive.")
    try members.required("batch", &batch, "Where it begins, and its transactions.")
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> EmptyResult {
    try await replica.append(batch, lease)
    return EmptyResult()
  }
}

package struct Load: ReplicaMethod {
  package static let method = "load"
  package static let summary = "Reads a piece of the contents."
  package static let lost = ReplicaError.Kind.away

  package var lease = ReplicaLease()
  package var position = ReplicaPosition.snapshot(part: 0)
  package init() {}

  package typealias Reply = ReplicaPage
  package var application: String? { lease.application }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "The lease of the archive.")
    try members.required("from", &position, "Where to begin.")
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> ReplicaPage {
    try await replica.load(lease, from: position).beginning(bytesMax: GatewayProtocol.pageBytesMax)
  }
}

package struct Snapshot: ReplicaMethod {
  package static let method = "snapshot"
  package static let summary = "Stores a part of a snapshot."

  package var lease = ReplicaLease()
  package var part = SnapshotPart()
  package init() {}

  package var application: String? { lease.application }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "The lease of the archive.")
    try members.required("part", &part, "The part.")
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> EmptyResult {
    try await replica.snapshot(part, lease)
    return EmptyResult()
  }
}

package struct Release: ReplicaMethod {
  package static let method = "release"
  package static let summary = "Gives the lease back, or removes the archive."

  package var lease = ReplicaLease()
  package var isRemoval = false
  package var upto: SequenceNumber?
  package var summary: [UInt8] = []
  package init() {}

  package init(_ lease: ReplicaLease, _ end: ReplicaEnd) {
    self.lease = lease
    switch end {
    case .left(let upto, let summary): (self.upto, self.summary) = (upto, summary)
    case .removed: isRemoval = true
    }
  }

  package var application: String? { lease.application }

  private var end: ReplicaEnd { isRemoval ? .removed : .left(upto: upto, summary: summary) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("lease", &lease, "The lease of the archive.")
    try members.flag("isRemoval", &isRemoval, "Whether the archive goes, and older copies of it with it.")
    try members.optional("upto", &upto, .sequence, "Where the contents end if everything was stored; absent if not.")
    try members.bytes("summary", &summary, "What lists say of it.")
  }

  /// Bytes of a summary, which is part of every list.
  static let summaryBytesMax = 4 << 10

  package func check() throws(Misfit) {
    guard summary.count <= Self.summaryBytesMax else {
      throw Misfit("base 64 of at most \(Self.summaryBytesMax) bytes", at: "summary")
    }
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> EmptyResult {
    try await replica.release(lease, end)
    return EmptyResult()
  }
}

package struct List: ReplicaMethod {
  package static let method = "list"
  package static let summary = "Lists the archives of the user, in pages."
  package static let lost = ReplicaError.Kind.away

  package var after: String?
  package init() {}

  package var application: String? { nil }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional("after", &after, .role, "Only those behind this application.")
  }

  package typealias Reply = ReplicaListing

  package func check(_ reply: ReplicaListing) throws(Misfit) {
    guard let after, let first = reply.archives.first?.application else { return }
    guard after.utf8.lexicographicallyPrecedes(first.utf8) else {
      throw Misfit("an application behind \(after)", at: "archives/0/application")
    }
  }

  nonisolated(nonsending) package func carryOut(
    on replica: any ArchiveReplica
  ) async throws(ReplicaError) -> ReplicaListing { try await replica.list(after: after) }
}

/// A replica at the other end of a connection: each of its functions is a call.
package protocol ForwardingReplica: ArchiveReplica {
  nonisolated(nonsending) func call<Method: ReplicaMethod>(
    _ method: Method
  ) async throws(ReplicaError) -> Method.Reply
}

extension ForwardingReplica {
  nonisolated(nonsending) package func acquire(
    _ application: String,
    as claim: ReplicaClaim
  ) async throws(ReplicaError) -> ReplicaGrant {
    try await call(Acquire().with { ($0.name, $0.claim) = (application, claim) })
  }

  nonisolated(nonsending) package func renew() async throws(ReplicaError) -> ReplicaRenewal {
    try await call(Renew()).renewal
  }

  nonisolated(nonsending) package func append(
    _ batch: ReplicaBatch,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    _ = try await call(Append().with { ($0.batch, $0.lease) = (batch, lease) })
  }

  nonisolated(nonsending) package func load(
    _ lease: ReplicaLease,
    from position: ReplicaPosition
  ) async throws(ReplicaError) -> ReplicaPage {
    try await call(Load().with { ($0.lease, $0.position) = (lease, position) })
  }

  nonisolated(nonsending) package func snapshot(
    _ part: SnapshotPart,
    _ lease: ReplicaLease
  ) async throws(ReplicaError) {
    _ = try await call(Snapshot().with { ($0.part, $0.lease) = (part, lease) })
  }

  nonisolated(nonsending) package func release(
    _ lease: ReplicaLease,
    _ end: ReplicaEnd
  ) async throws(ReplicaError) {
    _ = try await call(Release(lease, end))
  }

  nonisolated(nonsending) package func list(
    after application: String?
  ) async throws(ReplicaError) -> ReplicaListing { try await call(List().with { $0.after = application }) }
}
