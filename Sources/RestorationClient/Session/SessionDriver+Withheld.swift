// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import RestorationWire

extension SessionDriver {
  /// Logs once that the broker withholds the object's state, or has set aside a replaced one (R35).
  func tellWithheld(_ object: RestorableObject) {
    guard objects.isFirstWithheld(object.id) else { return }
    let command = (object.path ?? IdentifierPath([])).releaseCommand(of: options.application)
    let text = "the saved state of \(object) is withheld, because its process failed when it was given it"
    Logger(label: "restoration").warning("\(text); to release it: \(command)")
  }

  /// Logs that the broker did not store a state that it had asked for.
  func tellRefused(_ facts: EncodeFailed) {
    let nameless = facts.object == nil ? "the application itself" : "an object without a path"
    let subject = facts.path?.description ?? nameless
    Logger(label: "restoration").warning("the state of \(subject) is not saved: \(facts.error)")
  }
}
