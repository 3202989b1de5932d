/* JSON values: the one way to read, keep, merge and write them. Running out of memory ends the process, as everywhere
 * (json_setup). Nothing here fails silently: a stored text that does not parse, or a text that is not UTF-8, is a
 * corruption. It is logged and counted, and the current work of this thread (a call, a step of a job) fails. */
#ifndef STEWARD_BASE_JSON_H
#define STEWARD_BASE_JSON_H

#include "base/arena.h"

#include <jansson.h>

/* Call once, before any JSON value is made. */
void json_setup(void);

/* How many corruptions this thread has met. Whoever runs a handler compares the number before and after. */
uint64_t json_corruptions(void);

/* Compact text in the arena. */
struct str json_text(struct arena *a, const json_t *value);
/* A string field of an object. STR_NONE when the field is absent or not a string. Borrowed. */
struct str json_field(const json_t *object, const char *name);
/* The text of a string; STR_NONE of anything else. Borrowed. */
struct str json_str_of(const json_t *value);
/* An item of an array, as json_field(). */
struct str json_item(const json_t *array, size_t index);
/* Whether the array has that text. */
bool json_has(const json_t *array, struct str text);
/* The first object of the array whose field has that text; NULL: none has. Borrowed. */
json_t *json_find(const json_t *array, const char *field, struct str text);
/* Whether a field is true, and the whole number that a field is; false and 0 when it is absent or something else. */
bool json_flag(const json_t *object, const char *name);
json_int_t json_number(const json_t *object, const char *name);
/* An empty object; freed with the arena. */
json_t *json_new(struct arena *a);
/* A stored object; freed with the arena. */
json_t *doc_json(struct arena *a, struct str body);
/* Takes the value: it is freed with the arena. Returns it. */
json_t *json_keep(struct arena *a, json_t *value);
/* A copy that may be changed; freed with the arena. */
json_t *json_clone(struct arena *a, const json_t *value);
/* Fields of `from` replace those of `into`; objects are merged; null removes a field. */
void json_merge(json_t *into, const json_t *from);

/* Sets a field, taking the value; NULL leaves the object as it is. */
void json_put(json_t *object, const char *name, json_t *value);
/* Sets a field that is absent; takes the value. Returns the field. */
json_t *json_default(json_t *object, const char *name, json_t *value);
void json_put_str(json_t *object, const char *name, struct str text);
void json_put_z(json_t *object, const char *name, const char *text);
/* In ISO 8601. */
json_t *json_time(int64_t ms);
void json_put_time(json_t *object, const char *name, int64_t ms);
/* Whether the time that a field has is over; false where it has none. */
bool json_time_is_over(const json_t *object, const char *name);
/* Copies those of the fields that are there. */
void json_copy_fields(json_t *to, const json_t *from, const char *const *names, size_t count);
/* Adds to the end of an array. */
void json_add_str(json_t *array, struct str text);

#endif
