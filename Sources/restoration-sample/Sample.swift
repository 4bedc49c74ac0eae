// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient

/// One process of a sample application, an editor of source files: restoration-sample ROLE SOCKET JOURNAL [restore]
///
/// The role `windows` has a window for each folder, `documents` a document for each file; both read the files' paths
/// from standard input. It registers its objects, takes their states back, pushes states for as long as it runs, and
/// says on standard output, one JSON object a line, how far it is. The journal notes every state before it is sent and
/// after it was acknowledged, so that what comes back can be compared.
@main
struct Sample {
  static let application = "org.restorationd.Try"

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count >= 4, let role = Role(rawValue: arguments[1]) else {
      return Output.complain("usage: restoration-sample windows|documents SOCKET JOURNAL [restore]")
    }
    var files: [SourceText] = []
    while let path = readLine() { files.append(try SourceText(path)) }
    let broker = try await BrokerConnection.connect(to: arguments[2])
    let session = try await broker.initialize(SessionOptions(application: application, process: role.rawValue))
    var objects = role.objects(of: files)
    for index in objects.indices {
      let registration = ObjectRegistration(
        objects[index].identifier,
        restorationParent: objects[index].parent.map { .path([$0]) },
        kind: role == .windows ? .viewController : .object,
        classes: [role.className],
        awaitParent: .seconds(30)
      )
      let registered = try await broker.register(registration)
      objects[index].reference = registered.reference
    }
    if arguments.count > 4 {
      try await restore(objects, Journal.read(arguments[3]), session.restoration.reason, broker)
    } else {
      try await edit(objects, try Journal(appendingTo: arguments[3]), broker)
    }
  }

  /// Saves a state of every object, then one of a random object after the other, until the process is killed.
  private static func edit(_ objects: [EditedObject], _ journal: Journal, _ broker: BrokerConnection) async throws {
    var saved = 0
    func save(_ object: EditedObject) async throws {
      let state = object.nextState()
      journal.willSend(state, of: object.path)
      try await broker.encode(RestorableState(jsonText: state), for: object.reference)
      journal.acknowledged(object.path)
      saved += 1
    }
    for object in objects { try await save(object) }
    Output.say(#"{"event":"saved","objects":\#(objects.count)}"#)
    while let object = objects.randomElement() {
      try await save(object)
      if saved % 100 == 0 { Output.say(#"{"event":"typed","states":\#(saved)}"#) }
    }
  }

  /// Takes every state back and compares it with what the journal says.
  private static func restore(
    _ objects: [EditedObject],
    _ journal: [String: [String]],
    _ reason: RestorationSituation.Reason,
    _ broker: BrokerConnection
  ) async throws {
    var (last, newer, different) = (0, 0, 0)
    for object in objects {
      let state = try await broker.decode(object.reference).state?.jsonText
      // The first is the last that was acknowledged; those after it were sent and may be there.
      let expected = journal[object.path] ?? []
      switch state.flatMap(expected.firstIndex(of:)) {
      case 0: last += 1
      case nil:
        different += 1
        Output.complain("\(object.path): \(state ?? "nothing") came back")
      default: newer += 1
      }
    }
    try await broker.completeStateRestoration()
    Output.say(
      #"{"event":"restored","reason":"\#(reason.rawValue)","objects":\#(objects.count),"last":\#(last),"#
        + #""newer":\#(newer),"different":\#(different)}"#
    )
    try await broker.goodbye(.logout)
    await broker.close()
  }
}
