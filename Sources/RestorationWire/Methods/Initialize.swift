// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Opens a session, or resumes one after a broken connection or broker (R8, R20).
package struct Initialize: RestorationMethod {
  package static let method = "initialize"
  package static let summary = "Opens or resumes a session."
  package static let parameters: [Schema.Member] = [
    .required("application", .applicationName, "The application name."),
    .optional("session", .name, "Token of the session to resume, from an earlier answer."),
    .optional(
      "instance",
      .string,
      "Name of the instance, or `auto`: the most recently used instance that no live session uses and that was "
        + "not ended by `userQuit`, else a new one."
    ),
    .optional(
      "process",
      .text(pattern: nil, length: 1...processBytesMax),
      "Role of the process in the application, such as `editor`; shown to people, and the reason is told by it."
    ),
    .optional("bundleVersion", .name, "Version of the program; recorded with every state it writes (R26)."),
    .optional(
      "userInterfaceIdiom",
      .integer,
      "Kind of interface, by UIKit's numbers: −1 unspecified, 0 phone, 1 pad, 2 TV, 3 car, 5 Mac, 6 vision."
    ),
    .optional(
      "storyboard",
      Storyboard.schema,
      "The systemd user unit that starts this process again (R22)."
    ),
    .optional("delegate", .boolean, "This session is the application's delegate (R9)."),
    .optional(
      "serves",
      .list(ServedMethod.schema),
      "What the broker may call and notify this client of."
    ),
    .optional(
      "messageBytesMax",
      .integer(1...),
      "Bytes of the largest message the client reads; pages are made to fit."
    ),
    .optional(
      "aliases",
      Aliases.schema,
      "Names that archives of earlier versions use, and what they are called today."
    ),
    .optional("protocolVersion", .integer, "The version the client speaks."),
  ]
  package static let errors: [ErrorDescription] = [
    .invalidParams, .invalidRequest, .alreadyServed, .unsupportedProtocolVersion, .limitExceeded,
  ]
  package static let isScoped = false

  /// The value of `instance` that lets the broker choose.
  package static let automaticInstance = "auto"

  /// Bytes of UTF-8 a process role may have.
  package static let processBytesMax = 255

  package var application: ApplicationName
  /// Token of the session to resume.
  package var session: String?
  /// A name, or `automaticInstance`; well formed together with `application`.
  package var instance: String?
  /// Role of the process in its application, e.g. `editor`; several processes may have the same.
  package var process: String?
  package var bundleVersion: String?
  /// UIKit's numbers: −1 unspecified, 0 phone, 1 pad, 2 TV, 3 car, 5 Mac, 6 vision; any other is kept as it is.
  package var userInterfaceIdiom: Int64
  /// The unit that starts this process again.
  package var storyboard: String?
  package var delegate: Bool
  package var serves: [ServedMethod]
  /// Bytes of the largest frame that the client reads; nil where it has no limit.
  package var messageBytesMax: Int64?
  package var aliases: Aliases
  package var protocolVersion: Int64

  package init(
    application: ApplicationName,
    session: String? = nil,
    instance: String? = nil,
    process: String? = nil,
    bundleVersion: String? = nil,
    userInterfaceIdiom: Int64 = ReservedKeys.unspecifiedIdiom,
    storyboard: String? = nil,
    delegate: Bool = false,
    serves: [ServedMethod] = [],
    messageBytesMax: Int64? = nil,
    aliases: Aliases = Aliases(),
    protocolVersion: Int64 = ProtocolVersion.current
  ) {
    self.application = application
    self.session = session
    self.instance = instance
    self.process = process
    self.bundleVersion = bundleVersion
    self.userInterfaceIdiom = userInterfaceIdiom
    self.storyboard = storyboard
    self.delegate = delegate
    self.serves = serves
    self.messageBytesMax = messageBytesMax
    self.aliases = aliases
    self.protocolVersion = protocolVersion
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    guard let application = ApplicationName(try reader.string("application")) else {
      throw reader.wrong("application", "an application name")
    }
    self.application = application
    self.session = try reader.optionalName("session")
    self.instance = try reader.optionalString("instance")
    if let instance, application.with(instance: instance) == nil {
      throw reader.wrong("instance", "an instance name, for an application named without one")
    }
    self.process = try Self.process(from: reader)
    self.bundleVersion = try reader.optionalName("bundleVersion")
    self.userInterfaceIdiom =
      try reader.optionalInteger("userInterfaceIdiom", in: Int64.min...Int64.max) ?? ReservedKeys.unspecifiedIdiom
    self.storyboard = try Storyboard.unit(from: reader)
    self.delegate = try reader.bool("delegate")
    self.serves = try ServedMethod.read(from: reader, "serves")
    self.messageBytesMax = try reader.optionalInteger("messageBytesMax", in: 1...Int64.max)
    self.aliases = try Aliases.read(from: reader, "aliases")
    self.protocolVersion =
      try reader.optionalInteger("protocolVersion", in: Int64.min...Int64.max) ?? ProtocolVersion.current
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("application", application.description)
    writer.member("session", ifPresent: session)
    writer.member("instance", ifPresent: instance)
    writer.member("process", ifPresent: process)
    writer.member("bundleVersion", ifPresent: bundleVersion)
    if userInterfaceIdiom != ReservedKeys.unspecifiedIdiom {
      writer.member("userInterfaceIdiom", userInterfaceIdiom)
    }
    writer.member("storyboard", ifPresent: storyboard.map { Storyboard(unit: $0) })
    writer.member("delegate", ifTrue: delegate)
    if !serves.isEmpty {
      writer.member("serves", serves)
    }
    writer.member("messageBytesMax", ifPresent: messageBytesMax)
    if !aliases.isEmpty {
      writer.member("aliases", aliases)
    }
    writer.member("protocolVersion", protocolVersion)
  }

  /// Reads the member `process`; nil where it is absent or null.
  static func process(from reader: ParameterReader) throws(ErrorObject) -> String? {
    guard let process = try reader.optionalString("process") else { return nil }
    let isPrintable = !process.unicodeScalars.contains { $0.properties.generalCategory == .control }
    guard (1...processBytesMax).contains(process.utf8.count), isPrintable else {
      throw reader.wrong("process", "a name of 1 to \(processBytesMax) bytes without control characters")
    }
    return process
  }

  package struct Reply: RestorationResult, Hashable {
    package static let schema = Schema.object([
      .required("protocolVersion", .integer(1...), "The version that is spoken; the one asked for."),
      .required("broker", BrokerVersion.schema, "The broker's program."),
      .required("application", .applicationName, "The whole name, with the instance where there is one."),
      .required("session", .sessionToken, "Token to resume by: 32 hexadecimal digits."),
      .required("restoration", RestorationSituation.schema, "What there is to restore."),
      .required("limits", Limits.schema, "Every limit."),
    ])

    package var protocolVersion: Int64
    package var broker: BrokerVersion
    /// With the instance, also where the broker chose it.
    package var application: ApplicationName
    /// Token to resume by.
    package var session: String
    package var restoration: RestorationSituation
    package var limits: Limits

    package init(
      protocolVersion: Int64 = ProtocolVersion.current,
      broker: BrokerVersion,
      application: ApplicationName,
      session: String,
      restoration: RestorationSituation,
      limits: Limits
    ) {
      self.protocolVersion = protocolVersion
      self.broker = broker
      self.application = application
      self.session = session
      self.restoration = restoration
      self.limits = limits
    }

    package init?(_ slice: JSONSlice) {
      do throws(WrongShape) {
        let reader = try ResultReader(slice)
        self.protocolVersion = try reader.integer("protocolVersion")
        self.broker = try reader.value("broker") { BrokerVersion($0) }
        self.application = try reader.value("application") { $0.string().flatMap { ApplicationName($0) } }
        self.session = try reader.string("session")
        self.restoration = try reader.value("restoration") { RestorationSituation($0) }
        self.limits = try reader.value("limits") { Limits($0) }
      } catch {
        return nil
      }
    }

    package func write(to writer: inout JSONWriter) {
      writer.object { writer in
        writer.member("protocolVersion", protocolVersion)
        writer.member("broker", broker)
        writer.member("application", application.description)
        writer.member("session", session)
        writer.member("restoration", restoration)
        writer.member("limits", limits)
      }
    }
  }
}
