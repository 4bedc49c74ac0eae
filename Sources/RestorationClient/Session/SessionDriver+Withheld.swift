// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import RestorationWire

extension SessionDriver {
  /// The broker gives the object no state, although there is one (R35): whoever runs the program is told.
  func tellWithheld(_ object: RestorableObject) {
    let command = (object.path ?? IdentifierPath([])).releaseCommand(of: options.application)
    let text = "the saved state of \(object) is withheld, because its process failed when it was given it"
    Logger(label: "restoration").warning("\(text); to give it back: \(command)")
  }
}
