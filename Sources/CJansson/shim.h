// SPDX-License-Identifier: Apache-2.0
#ifndef RESTORATIOND_CJANSSON_SHIM_H
#define RESTORATIOND_CJANSSON_SHIM_H

#include <jansson.h>

// Swift does not import the function-like macro json_typeof.
static inline json_type cjansson_typeof(const json_t *value) {
    return json_typeof(value);
}

// Swift does not import the function-like macro JSON_INDENT.
static inline size_t cjansson_indent(size_t columns) {
    return JSON_INDENT(columns);
}

// json_error_t.text is a C array, which Swift imports as a tuple of 160 members.
static inline const char *cjansson_error_text(const json_error_t *error) {
    return error->text;
}

#endif
