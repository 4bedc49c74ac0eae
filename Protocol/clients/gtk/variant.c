/* SPDX-License-Identifier: Apache-2.0 */
#include "variant.h"

#include <stdbool.h>
#include <string.h>

/*
 * A value goes as plain JSON if reading that gives an equal value of the same type. Otherwise it goes as its text,
 * {"$variant": "uint32 5"}, and where even the text is not exact (NaN with a payload, data not in normal form), as its
 * bytes, {"$variant": {"type": "d", "data": BASE64}}.
 */
#define TAG "$variant"

static GVariant *value_of_json(const json_t *json);
static json_t *json_of_value(GVariant *value);

/* -- Reading ---------------------------------------------------------------------------------------------------- */

static GVariant *tagged(const json_t *form) {
  if (json_is_string(form)) return g_variant_parse(NULL, json_string_value(form), NULL, NULL, NULL);
  const char *type = json_string_value(json_object_get(form, "type"));
  const char *data = json_string_value(json_object_get(form, "data"));
  if (!type || !data || !g_variant_type_string_is_valid(type) || !g_variant_type_is_definite(G_VARIANT_TYPE(type)))
    return NULL;
  gsize size;
  guchar *decoded = g_base64_decode(data, &size);
  GBytes *bytes = g_bytes_new_take(decoded, size);
  GVariant *value = g_variant_take_ref(g_variant_new_from_bytes(G_VARIANT_TYPE(type), bytes, FALSE));
  g_bytes_unref(bytes);
  /* Bytes are saved as on a little-endian machine. */
  if (G_BYTE_ORDER != G_BIG_ENDIAN) return value;
  GVariant *swapped = g_variant_byteswap(value);
  g_variant_unref(value);
  return swapped;
}

static GVariant *dictionary(const json_t *json) {
  GVariantBuilder builder;
  g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)json, key, member) {
    GVariant *value = value_of_json(member);
    if (!value) continue;
    g_variant_builder_add(&builder, "{sv}", key, value);
    g_variant_unref(value);
  }
  return g_variant_builder_end(&builder);
}

/* Whether a JSON array may be a GVariant array of these. */
static bool is_plain(const GVariantType *type) {
  return strchr("sixdb", *g_variant_type_peek_string(type)) || g_variant_type_equal(type, G_VARIANT_TYPE_VARDICT);
}

/* An array of strings, integers, reals, booleans or dictionaries if all are the same, else of variants. */
static GVariant *array(const json_t *json) {
  GPtrArray *values = g_ptr_array_new_with_free_func((GDestroyNotify)g_variant_unref);
  size_t index;
  json_t *element;
  bool is_uniform = true;
  json_array_foreach(json, index, element) {
    GVariant *value = value_of_json(element);
    if (!value) continue;
    g_ptr_array_add(values, value);
    const GVariantType *type = g_variant_get_type(value);
    is_uniform &= is_plain(type) && g_variant_type_equal(type, g_variant_get_type(values->pdata[0]));
  }
  const GVariantType *type = values->len == 0 ? G_VARIANT_TYPE_STRING
      : is_uniform                            ? g_variant_get_type(values->pdata[0])
                                              : G_VARIANT_TYPE_VARIANT;
  for (guint i = 0; i < values->len && !is_uniform; i++) {
    GVariant *inner = values->pdata[i];
    values->pdata[i] = g_variant_take_ref(g_variant_new_variant(inner));
    g_variant_unref(inner);
  }
  GVariant *result = g_variant_new_array(type, (GVariant *const *)values->pdata, values->len);
  g_ptr_array_unref(values);
  return result;
}

/* Some floating and some not; NULL if no GVariant can hold it. */
static GVariant *new_value(const json_t *json) {
  switch (json_typeof(json)) {
    case JSON_NULL: return g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL);
    case JSON_TRUE:
    case JSON_FALSE: return g_variant_new_boolean(json_is_true(json));
    case JSON_REAL: return g_variant_new_double(json_real_value(json));
    case JSON_INTEGER: {
      json_int_t integer = json_integer_value(json);
      return integer >= G_MININT32 && integer <= G_MAXINT32 ? g_variant_new_int32((gint32)integer)
                                                            : g_variant_new_int64(integer);
    }
    case JSON_STRING:
      if (strlen(json_string_value(json)) != json_string_length(json)) return NULL;
      return g_variant_new_string(json_string_value(json));
    case JSON_ARRAY: return array(json);
    case JSON_OBJECT: {
      const json_t *form = json_object_get(json, TAG);
      return form && json_object_size(json) == 1 ? tagged(form) : dictionary(json);
    }
  }
  return NULL;
}

/* A full reference; NULL if no GVariant can hold it. */
static GVariant *value_of_json(const json_t *json) {
  GVariant *value = new_value(json);
  return value ? g_variant_take_ref(value) : NULL;
}

GVariant *state_of_json(const json_t *json) {
  GVariant *value = json_is_object(json) ? value_of_json(json) : NULL;
  if (value && g_variant_is_of_type(value, G_VARIANT_TYPE_VARDICT)) return value;
  if (value) g_variant_unref(value);
  return g_variant_take_ref(g_variant_new("a{sv}", NULL));
}

/* -- Writing ---------------------------------------------------------------------------------------------------- */

/* The value itself, not what a dictionary or an array of variants has around it. */
static json_t *json_of_child(GVariant *child) {
  GVariant *value = g_variant_is_of_type(child, G_VARIANT_TYPE_VARIANT) ? g_variant_get_variant(child)
                                                                       : g_variant_ref(child);
  json_t *json = json_of_value(value);
  g_variant_unref(value);
  return json;
}

/* What may read as an equal value; NULL if there is no such. */
static json_t *plain(GVariant *value) {
  switch (g_variant_classify(value)) {
    case G_VARIANT_CLASS_BOOLEAN: return json_boolean(g_variant_get_boolean(value));
    case G_VARIANT_CLASS_INT32: return json_integer(g_variant_get_int32(value));
    case G_VARIANT_CLASS_INT64: return json_integer(g_variant_get_int64(value));
    case G_VARIANT_CLASS_DOUBLE: return json_real(g_variant_get_double(value)); /* NULL if it is not finite */
    case G_VARIANT_CLASS_STRING: return json_string(g_variant_get_string(value, NULL));
    case G_VARIANT_CLASS_MAYBE: return json_null();
    case G_VARIANT_CLASS_ARRAY: break;
    default: return NULL;
  }
  bool is_dictionary = g_variant_is_of_type(value, G_VARIANT_TYPE_VARDICT);
  /* The broker would take such an object for a reference, or its protection. */
  for (int i = 0; is_dictionary && i < 2; i++) {
    GVariant *found = g_variant_lookup_value(value, i == 0 ? "$restorable" : "$literal", NULL);
    if (!found) continue;
    g_variant_unref(found);
    return NULL;
  }
  const GVariantType *element = g_variant_type_element(g_variant_get_type(value));
  if (!is_dictionary && !is_plain(element) && !g_variant_type_equal(element, G_VARIANT_TYPE_VARIANT)) return NULL;
  json_t *json = is_dictionary ? json_object() : json_array();
  for (gsize i = 0; i < g_variant_n_children(value); i++) {
    GVariant *child = g_variant_get_child_value(value, i);
    if (is_dictionary) {
      const char *key;
      GVariant *member;
      g_variant_get(child, "{&sv}", &key, &member);
      json_object_set_new(json, key, json_of_value(member));
      g_variant_unref(member);
    } else {
      json_array_append_new(json, json_of_child(child));
    }
    g_variant_unref(child);
  }
  return json;
}

static bool reads_as(const json_t *json, GVariant *value) {
  GVariant *read = value_of_json(json);
  if (!read) return false;
  bool is_equal = g_variant_equal(read, value);
  g_variant_unref(read);
  return is_equal;
}

static json_t *json_of_value(GVariant *value) {
  json_t *json = plain(value);
  if (json && reads_as(json, value)) return json;
  json_decref(json);
  char *text = g_variant_print(value, TRUE);
  json = json_pack("{s:s}", TAG, text);
  g_free(text);
  if (json && reads_as(json, value)) return json;
  json_decref(json);
  GVariant *bytes = G_BYTE_ORDER == G_BIG_ENDIAN ? g_variant_byteswap(value) : g_variant_ref(value);
  char *data = g_base64_encode(g_variant_get_data(bytes), g_variant_get_size(bytes));
  json = json_pack("{s:{s:s,s:s}}", TAG, "type", g_variant_get_type_string(value), "data", data);
  g_free(data);
  g_variant_unref(bytes);
  return json;
}

json_t *json_of_state(GVariant *state) { return json_of_value(state); }
