/* What an ordinary endpoint does: list, get, create, update, replace and delete documents that the schema describes. A
 * row of api/ names the verb and the resource; a family adds hooks only for what is particular. */
#ifndef STEWARD_API_VERBS_H
#define STEWARD_API_VERBS_H

#include "gate/call.h"

/* Each may be NULL. They run in the write, before it, and return 0 or negative after call_fail(). */
struct resource_hooks {
	int (*create)(struct call *c, json_t *document);
	int (*update)(struct call *c, const struct doc *old, json_t *document); /* document: already merged */
	int (*remove)(struct call *c, const struct doc *old);
};

int verb_list(struct call *c);
int verb_get(struct call *c);
int verb_create(struct call *c);
int verb_update(struct call *c);
int verb_replace(struct call *c);
int verb_delete(struct call *c);

/* The document that the path names. A singleton that was never written is its defaults, with revision 0. */
must_check int resource_load(struct call *c, const struct resource *r, struct doc *ret_doc);
/* 412 unless If-Match is absent, "*", or names the revision. */
must_check int if_match(struct call *c, int64_t revision);
/* Removes every document below a parent: singletons and lists of all resources whose parent is that parameter. */
must_check int resource_delete_children(struct call *c, const char *parent_param, struct str parent_id);

/* The last document of a list. -ENOENT: it has none. */
must_check int doc_last(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct doc *ret_doc);

/* Compact JSON text in the arena. */
struct str json_text(struct arena *a, const json_t *value);
/* A string field of an object; STR_NONE when it has none, or one that is no string. Borrowed. */
struct str json_field(const json_t *object, const char *name);
/* Parses a stored body; freed with the arena. */
json_t *doc_json(struct arena *a, struct str body);
/* Takes the value: it is freed with the arena. Returns it. */
json_t *json_keep(struct arena *a, json_t *value);
/* A copy that may be changed; freed with the arena. */
json_t *body_copy(struct arena *a, const json_t *value);
/* Fields given replace what is there; objects are merged; null takes a field away. */
void json_merge(json_t *into, const json_t *from);

/* links.c */
void links_setup(void);
/* The base URL is known: before anything is served. */
void links_base(const char *base_url);
void links_teardown(void);
/* The URL of an operation's path: parameters from the call by name, `key_param` from `key`. */
struct str link_href(struct call *c, const struct op *op, const char *key_param, struct str key);
/* The same for an entity whose path has parameters that the call's has not: those are fields of its body. */
struct str entity_href(struct call *c, const struct op *op, const char *key_param, struct str key, struct str body);
/* One entity: its body with "links". In a list only self; on its own also what lies below it and the caller may read. */
void entity_write(struct call *c, struct buf *b, struct str body, const struct op *self, const char *key_param,
                  struct str key, bool in_list);
/* One more link of the entity that was just written, to what does not lie below it. */
void entity_link(struct call *c, struct buf *b, const char *rel, struct str href);

/* lists.c: a list document. total: -1 when it was not counted; has_next tells about the page after this one. */
void list_begin(struct call *c);
/* Between the two: append entities to c->out with json_sep rules. */
void list_end(struct call *c, int64_t total, bool has_next);
/* Offset of the page asked for. */
int64_t list_offset(const struct call *c);

/* A list over several stored lists and single documents, one after the other, in a stable order. */
struct segment {
	const char *kind;
	struct str parent; /* a whole list, or */
	struct str id;     /* one document */
};
/* Writes the page; name_prefix filters by "name", ignoring case (empty: all). */
must_check int list_segments(struct call *c, const struct resource *r, const struct segment *segments, size_t count,
                             struct str name_prefix);
/* The same without a filter, each entry written by a function of its own: 0 or negative. */
typedef int segment_writer(struct call *c, const void *ctx, const struct doc *d);
must_check int list_segments_by(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
                                const void *ctx);

#endif
