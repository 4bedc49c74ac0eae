/* SPDX-License-Identifier: Apache-2.0 */
/* States of GTK, a{sv}, as JSON and back. */
#ifndef RESTORATION_GTK_VARIANT_H
#define RESTORATION_GTK_VARIANT_H

#include <glib.h>
#include <jansson.h>

/* An object, a new reference, that gives an equal state back. */
json_t *json_of_state(GVariant *state);

/* An a{sv}, a full reference; members that no GVariant can hold are left out. Empty if `json` is not an object. */
GVariant *state_of_json(const json_t *json);

#endif
