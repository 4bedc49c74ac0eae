// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

extension BrokerConfiguration {
  /// The merged contents of the configuration files, and which file has set each member.
  struct Settings {
    private var values = JSONObject()
    /// Files by `member`, and by `member/inner member`.
    private var origins: [String: String] = [:]

    subscript(_ member: String) -> JSONValue? { values[member] }

    /// The file that decides a member or a member inside it, and the member, for messages.
    func place(of member: String, _ inner: String? = nil) -> String {
      let origin = inner.flatMap { origins["\(member)/\($0)"] } ?? origins[member]
      return origin.map { "\($0): \(member)" } ?? member
    }

    private static let types: [(name: String, kind: String, isRight: @Sendable (JSONValue) -> Bool)] = [
      ("socket", "a string", { $0.string != nil }),
      ("archives", "a string", { $0.string != nil }),
      ("logLevel", "a string", { $0.string != nil }),
      ("developerMode", "true or false", { $0.bool != nil }),
      ("idleExitSeconds", "a whole number", { $0.integer != nil }),
      ("limits", "an object", { $0.object != nil }),
      ("replica", "an object", { $0.object != nil }),
      ("restoreAtLogin", "an object", { $0.object != nil }),
    ]

    mutating func merge(_ text: String, of path: String) throws {
      let value: JSONValue
      do {
        value = try JSONCodec.parse(Array(text.utf8))
      } catch {
        throw Fault(description: "\(path) is not JSON: \(error.message) at byte \(error.position); fix or remove it")
      }
      guard let object = value.object else {
        throw Fault(description: "\(path) is not a JSON object; fix or remove it")
      }
      for (name, value) in object.members {
        if name == "unusedDays" {
          let instead = "enable restorationd-forget-unused.timer, or call restorationctl forget --unused"
          throw Fault(description: "\(path): unusedDays is no longer a setting; remove it, and \(instead)")
        }
        guard let type = Self.types.first(where: { $0.name == name }) else {
          let known = Self.types.map(\.name).joined(separator: ", ")
          throw Fault(description: "\(path): unknown setting \(name); the settings are \(known)")
        }
        guard type.isRight(value) else { throw Fault(description: "\(path): \(name) is not \(type.kind)") }
        origins[name] = path
        for (inner, _) in value.object?.members ?? [] { origins["\(name)/\(inner)"] = path }
        if var members = values[name]?.object {
          for (member, value) in value.object?.members ?? [] { members[member] = value }
          values[name] = .object(members)
        } else {
          values[name] = value
        }
      }
    }

    /// A time of 0 (never) or inside a range. `said`: the flag's value, which overrides the files.
    func seconds(_ member: String, or said: Int?, _ flag: String, _ range: ClosedRange<Int>) throws -> Int {
      let time = said ?? values[member]?.integer.flatMap { Int(exactly: $0) } ?? 0
      guard time == 0 || range.contains(time) else {
        let place = said == nil ? place(of: member) : flag
        let (least, most) = (range.lowerBound, range.upperBound)
        throw Fault(
          description: "\(place): \(time) is out of range; choose from \(least) to \(most) seconds, or 0 for never"
        )
      }
      return time
    }

    func limits() throws -> Limits {
      guard let object = values["limits"]?.object else { return Limits() }
      do throws(Limits.Fault) {
        return try Limits(overriding: object)
      } catch {
        throw Fault(description: "\(place(of: "limits", error.limit)): \(error)")
      }
    }

    /// Policies by application, by application without instance, or `*` for all others.
    func policies() throws -> LoginPolicies {
      var policies: [String: LoginPolicy] = [:]
      for (name, value) in values["restoreAtLogin"]?.object?.members ?? [] {
        let place = place(of: "restoreAtLogin", name)
        guard name == "*" || ApplicationName(name)?.isSetAside == false else {
          throw Fault(description: "\(place): \(name) is neither an application name nor *")
        }
        guard let policy = value.string.flatMap({ LoginPolicy(rawValue: $0) }) else {
          let words = LoginPolicy.allCases.map(\.rawValue).joined(separator: ", ")
          throw Fault(description: "\(place): the value of \(name) is not one of \(words)")
        }
        policies[name] = policy
      }
      return LoginPolicies(policies)
    }

    /// `nil` if archives stay on this host. `directory`: the default directory of keys.
    func replica(keys directory: () -> String?) throws -> ReplicaConfiguration? {
      guard let object = values["replica"]?.object else { return nil }
      return try ReplicaConfiguration(object, place: { place(of: "replica", $0) }, keys: directory)
    }
  }
}
