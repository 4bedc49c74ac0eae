// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient

// Compares the broker's data of an application with its saved states.
extension Proof {
  /// The broker's data, and the result of a round.
  struct View {
    var owners: [[String]: Int64] = [:]
    var orphans: Set<[String]> = []
    var entries: [[String]: JSONValue] = [:]
    /// Processes that the round asked.
    var serving: Set<Int64> = []
    /// Why the round asked no process, if another round may.
    var reason: String?
    var decodes = false
    var stale: [[String]: String] = [:]
  }

  /// The broker's data. If `ask`, runs a save round first.
  func look(_ application: String, ask: Bool) async throws -> View {
    do {
      let description = try await answer(of: "describeApplication") { [connection] in
        try await connection.describeApplication(application)
      }
      let serving = description.sessions.filter { ask && $0.serves.contains(.encodeRestorableStateWithCoder) }.map(
        \.pid
      )
      var round: JSONValue = [:]
      if !serving.isEmpty {
        round = try await call("saveApplicationState", ["application": .string(application)])
      }
      let text = try await answer(of: "exportArchive") { [connection] in
        try await connection.exportArchive(of: application, reveal: true)
      }
      var view = View()
      view.decodes = description.sessions.contains { $0.serves.contains(.decodeRestorableStateWithCoder) }
      for object in description.objects {
        guard let path = object.path?.components else { continue }
        if object.object != nil { view.owners[path] = object.pid }
        if object.orphaned { view.orphans.insert(path) }
      }
      for entry in try JSONCodec.parse(text.utf8)["objects"]?.array ?? [] {
        let place = path(entry["path"] ?? [])
        if !place.isEmpty || entry["state"] != nil { view.entries[place] = entry }
      }
      let reason = round["reason"]?.string
      if reason == nil || reason == "unchanged" { view.serving = Set(serving) }
      if reason == "restoring" || reason == "interrupted" { view.reason = reason }
      for object in round["stale"]?.array ?? [] {
        view.stale[path(object["path"] ?? [])] = object["message"]?.string ?? object["why"]?.string ?? ""
      }
      return view
    } catch let error as RestorationError where error.code == .unknownApplication {
      return View()  // nothing was saved
    }
  }

  /// Objects not shown since the restart, each with whether it has its state, and the losses.
  func lost() async throws -> (silent: [Key: Bool], losses: [LostStateError.Loss]) {
    var (silent, losses, views): ([Key: Bool], [LostStateError.Loss], [String: View]) = ([:], [], [:])
    for application in Set(saved.keys.map(\.application)).sorted() {
      let view = try await look(application, ask: true)
      views[application] = view
      if let reason = view.reason {
        let text = "a save round could not ask for states (\(reason))"
        losses.append(LostStateError.Loss(application: application, path: "", field: nil, reason: text))
      }
    }
    for (key, before) in saved {
      let view = views[key.application] ?? View()
      let place = key.path.joined(separator: "/")
      func lose(_ reason: String) {
        let text = "\(reason); it was \(Self.shown(before["state"]))"
        losses.append(LostStateError.Loss(application: key.application, path: place, field: nil, reason: text))
      }
      let owner = view.owners[key.path]
      if !key.path.isEmpty && owner == nil {
        lose("the object did not come back")
        continue
      }
      if let reason = view.stale[key.path] {
        lose("it gave no state when it was asked (\(reason))")
        continue
      }
      if !run.pushed.contains(key) {
        let hasDecoded = if let owner { try await self.hasDecoded(key, owner, view) } else { true }
        // An owner that answers "unchanged" without a decode shows nothing.
        let wasAsked = owner.map(view.serving.contains) ?? !view.serving.isEmpty
        if !hasDecoded || !wasAsked { silent[key] = hasDecoded }
        if !hasDecoded { lose("its state was neither decoded nor pushed again") }
      }
      for part in ["state", "elements"] {
        let (old, new) = (Self.part(before, part), Self.part(view.entries[key.path] ?? [:], part))
        losses += differences(key, place, part == "state" ? "" : part, old, new)
      }
    }
    return (silent, losses.sorted { "\($0)" < "\($1)" })
  }

  /// Whether the object's owner has its state. Asking delivers nothing.
  private func hasDecoded(_ key: Key, _ owner: Int64, _ view: View) async throws -> Bool {
    if decoded[key] == owner { return true }
    let application = key.application
    let object = ObjectReference.path(IdentifierPath(key.path))
    let steps = try await answer(of: "explainRestoration") { [connection] in
      try await connection.call(ExplainRestoration(object: object), of: application).restored
    }
    var has = steps.contains { step in step.step == .finished && step.at.map { $0 >= run.started } ?? false }
    if !has && !view.decodes {
      // A restoration skips objects whose owner fetches them itself, until it has (R22).
      let names = JSONValue.array(key.path.map { .string($0) })
      let restoration = try await call(
        "restoreApplicationState",
        ["application": .string(application), "objects": [names], "deadlineMilliseconds": 100]
      )
      let left = (restoration["absent"]?.array ?? []) + (restoration["skipped"]?.array ?? []).compactMap { $0["path"] }
      has = restoration["declined"] == nil && !left.contains(names)
    }
    // Otherwise it is finished when its decode window closes (R31).
    if has { decoded[key] = owner }
    return has
  }

  /// Fields that differ, each with both values.
  private func differences(
    _ key: Key,
    _ place: String,
    _ field: String,
    _ before: JSONValue?,
    _ after: JSONValue?
  ) -> [LostStateError.Loss] {
    if mayDiffer("\(place):\(field)", before, after) { return [] }
    switch (before, after) {
    case (.object(let old)?, .object(let new)?):
      let names = old.members.map(\.name) + new.members.map(\.name).filter { old[$0] == nil }
      return names.flatMap { differences(key, place, "\(field)/\(JSONPointer.escaped($0))", old[$0], new[$0]) }
    case (.array(let old)?, .array(let new)?):
      return (0..<max(old.count, new.count)).flatMap { index in
        let (old, new) = (old.dropFirst(index).first, new.dropFirst(index).first)
        return differences(key, place, "\(field)/\(index)", old, new)
      }
    case (.integer(let integer)?, .real(let real)?), (.real(let real)?, .integer(let integer)?):
      // 1 and 1.0 are one number: another library may have written the text. A `Double` does not hold every integer.
      if Int64(exactly: real) == integer { return [] }
    default:
      if before == after { return [] }
    }
    let reason = "\(Self.shown(before)) came back as \(Self.shown(after))"
    return [LostStateError.Loss(application: key.application, path: place, field: field, reason: reason)]
  }

  /// Whether a field may differ. An absent value is not tested.
  private func mayDiffer(_ field: String, _ before: JSONValue?, _ after: JSONValue?) -> Bool {
    func matches(_ pattern: String) -> Bool { fnmatch(pattern, field, FNM_NOESCAPE) == 0 }
    if options.changing.contains(where: matches) { return true }
    let tests = options.allowing.filter { matches($0.key) }.values
    guard !tests.isEmpty, let before = Self.restorable(before), let after = Self.restorable(after) else { return false }
    return tests.contains { $0(before, after) }
  }

  private static func restorable(_ value: JSONValue?) -> RestorableValue? {
    value.flatMap { try? RestorableState(jsonText: JSONText(["value": $0]).string)["value"] }
  }

  /// A state, or elements without the parts that depend on the data source.
  private static func part(_ entry: JSONValue, _ name: String) -> JSONValue? {
    guard name == "elements" else { return entry[name] }
    let elements = (entry[name]?.array ?? []).map { element in
      let members = (element.object ?? [:]).members.filter { $0.name != "resolved" && $0.name != "unresolved" }
      return JSONValue.object(JSONObject(members))
    }
    return .array(elements)
  }

  private static func shown(_ value: JSONValue?) -> String {
    guard let value else { return "nothing" }
    let text = JSONText(value).string
    return text.count <= 200 ? text : "\(text.prefix(200))…"
  }

  private func call(_ method: String, _ parameters: JSONValue) async throws -> JSONValue {
    let text = JSONText(parameters).string
    let result = try await answer(of: method) { [connection] in try await connection.call(method, text) }
    return try JSONCodec.parse(result.utf8)
  }
}
