// SPDX-License-Identifier: Apache-2.0

/// What becomes of an application when its user logs in.
package enum LoginPolicy: String, WireWord {
  case never, ask, always
}
