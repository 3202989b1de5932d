/* The API in the words of another service, for clients that were written for that one: another path prefix, other media
 * types, other names of fields and values. A dialect is a file of api/dialects/; script/dialects.py makes these tables
 * of it. Gates and handlers see our own words alone: a call is translated at the edge, both ways.
 *
 * A pair of words is exchanged, where a schema says that it is a word: ours becomes theirs and theirs ours. So one
 * function translates in both directions. */
#ifndef STEWARD_CATALOG_DIALECT_H
#define STEWARD_CATALOG_DIALECT_H

#include "base/buf.h"
#include "catalog/catalog.h"

struct vocabulary;

struct word {
	const char *from;
	size_t from_n;
	const char *to;
	size_t to_n;
	const struct vocabulary *below; /* of a field: the words of its value, or NULL */
	/* Or NULL: the value has words only where the object's field of the first name has one of the other values. */
	const char *const *when;
};

/* The words of one place: those of an object's fields, of a text, of a list's items. */
struct vocabulary {
	const struct word *fields; /* shorter ones first, then by bytes; so all lists of words */
	size_t field_count;
	const struct word *values;
	size_t value_count;
	const struct vocabulary *items, *additional; /* or NULL */
};

/* A path beside the API that clients of a dialect ask for. */
struct dialect_endpoint {
	const char *path;
	enum method method;
	short status;
	bool is_json;
	const char *body; /* with @address, @version and @majorVersion in it; NULL: none */
};

enum dialect_leniency {
	LENIENT_READ_ONLY = 1, /* read-only fields of a body are ignored, not refused */
	LENIENT_NULL = 2,      /* a field that is null and may not be is absent */
	LIMITS_ARE_OBJECTS = 4 /* numbers of rate limits are objects: value, and defaultValue where that is another */
};

struct dialect {
	const char *name, *title;              /* "atlas", "MongoDB Atlas" */
	unsigned index;                        /* of catalog_dialects, from 1 on: 0 is our own */
	const char *base, *base_v1;            /* "/api/atlas/v2"; base_v1 NULL: there is none */
	const char *media;                     /* "application/vnd.atlas." */
	unsigned lenient;                      /* LENIENT_ bits */
	const char *const *paths;              /* by index of catalog_ops: op->path in its words */
	const bool *partial;                   /* the same: a PATCH may leave out what is required */
	const struct vocabulary *const *roots; /* by index of schema_rows; NULL: no words below */
	const struct word *texts;              /* from our words to its: those that are no others in a sentence */
	size_t text_count;
	const struct dialect_endpoint *endpoints;
	size_t endpoint_count;
};

extern const struct dialect catalog_dialects[];
extern const unsigned catalog_dialect_count;

/* Which dialects are served: names with commas between them, or "none". Negative: there is no dialect of that name. All
 * are, unless this is called. */
must_check int dialects_choose(struct str names);
bool dialect_is_served(const struct dialect *d);
/* The dialect that the path belongs to, served or not; or NULL. */
const struct dialect *dialect_of_path(struct str path);
/* What a dialect serves beside the API, for any method; NULL: nothing there. */
const struct dialect_endpoint *dialect_endpoint(struct str path);

/* Whether a dialect that is served has the word for one of ours: then nobody can have it as a name of the same kind. */
bool dialect_reserves(struct str word);

/* In all below: d NULL, and words NULL, leave everything as it is. */

/* The path of an operation below its base, and that base. */
static inline const char *dialect_path(const struct dialect *d, const struct op *op)
{
	return d ? d->paths[op - catalog_ops] : op->path;
}

static inline const char *dialect_base(const struct dialect *d, bool v1)
{
	if (d)
		return v1 ? d->base_v1 : d->base;
	return v1 ? API_BASE_V1 : API_BASE;
}

/* What its media types begin with, up to the date. */
static inline const char *dialect_media(const struct dialect *d)
{
	return d ? d->media : API_MEDIA;
}

/* The words of what a schema describes: a body or a parameter. */
static inline const struct vocabulary *dialect_words(const struct dialect *d, const struct schema *s)
{
	return d && s ? d->roots[s - schema_rows] : NULL;
}

/* A text that those words may be; the same when it is none of them. */
struct str words_value(const struct vocabulary *w, struct str text);
/* The same of each part between commas. */
struct str words_list(const struct vocabulary *w, struct str text, struct arena *a);
/* The other word of a path parameter's value. */
struct str param_word(const struct dialect *d, const struct op *op, struct str name, struct str value);
static inline struct str dialect_param(const struct dialect *d, const struct op *op, struct str name, struct str value)
{
	return d ? param_word(d, op, name, value) : value;
}

/* Translates a value in place. */
void words_json(const struct vocabulary *w, json_t *value);
/* Translates JSON text that we have written, and appends it. What is not JSON stays as it is. */
void words_text(const struct vocabulary *w, struct str json, struct buf *out);
/* The place and the words of a fault that was found in a translated value. */
void words_fault(const struct vocabulary *w, struct fault *f, struct arena *a);
/* A sentence about a text that those words may be, with the other words in it. */
struct str words_sentence(const struct vocabulary *w, struct str text, struct arena *a);
/* A sentence for people, with our words in it as they are in the dialect; except those that `said` or `body` has as
 * words of their own: the caller wrote them. What stands in quotes is a name, and stays. */
struct str dialect_sentence(const struct dialect *d, struct str text, struct str said, struct str body,
                            struct arena *a);

#endif
