// SPDX-License-Identifier: Apache-2.0

/// What becomes of a session's objects when it ends (R30).
public enum GoodbyeReason: String, WireWord {
  /// The session's objects are over; their state is removed.
  case closed
  /// The user quit the application; its state is discarded.
  case userQuit
  /// The process comes back, e.g. after an update; everything is kept.
  case restart
  /// The user's session ends; everything is kept.
  case logout
}
