/* What an ordinary endpoint does: list, get, create, update, replace and delete documents that the schema describes. A
 * row of api/ names the verb and the resource; "resources" says what a document of the kind is:
 *
 *   kind             in the store, where the resource's name is another
 *   self, groupSelf  the GET of one, and the one for calls below a project. Without it: no links, no Location
 *   etag             false: it is shown with what other documents say, so its revision is no ETag
 *   parent, below    the path parameter of the organization or project that it belongs to; or the resource that it lies
 *                    below (a cluster), which is found by that one's own key, and takes it along when it is deleted.
 *                    Two of them, ["cluster", "flex_cluster"]: either, found by the first one's key.
 *                    In a project "orgId" is the project's organization
 *   key, keyIsName   the path parameter that names one; a name instead of an id. Without a key: one for each parent
 *   notFound         the code of the 404; without it, as what it belongs to. script/not_found.py: those of parameters
 *   elsewhere        a kind of the same project whose document of that name is refused so, in the place of the 404
 *   name, duplicate  the field that is unique within the parent, and the refusal of a second
 *   busy             the refusal of a change or deletion that the state of its lifecycle does not allow
 *   limit            how many a parent has at most, and the refusal of one more; projectLimit: a limit of the project
 *   holds            kinds of documents below it with which it is not deleted, and the refusal
 *   id, fill, touch  fields that the service sets: the id; when it is made; with each change. They are readOnly
 *                    in what callers send, as the field of a state is, and a replace keeps them
 *   events           fields of the events, from fields of the document
 *   changes          fields whose change has an event of its own: an update writes one for each that it changes, and
 *                    the row's for the others; none when nothing changes
 *   sealed           fields that are kept encrypted and never given out, nor recorded. A change
 *                    or replace that does not have one keeps it; null takes it away, where the schema allows that
 *   references       fields that name other resources of the same parent, by their key: checked when it is written
 *                    ("missing"), so that nothing names what is not there or is on its way out. What is named is not
 *                    deleted ("inUse"), nor renamed; or it takes along what names it, at once and at every level
 *   defaults         what a singleton is before it is first written
 *   merge            "shallow": an update replaces whole fields, also objects
 *   links            false: written without links
 *   schema           of the stored document; without one the hooks alone know what is kept, and save() writes it
 *   check            false: more is stored than the schema has, and the hooks have checked it
 *
 * A kind with a lifecycle (kit/lifecycle.h) is begun, and moved by the words CHANGE and DELETE where its table has
 * them, by the verbs; create and update hooks, where there are any, do that themselves.
 *
 * A row with "byName" finds the resource by its name; "filters" leave entries out of a list. A list whose answer is an
 * array has no pages. A family adds hooks only for what is particular. */
#ifndef STEWARD_API_KIT_VERBS_H
#define STEWARD_API_KIT_VERBS_H

#include "api/handlers.h"
#include "base/json.h"
#include "call/call.h"

struct segment;

/* Each may be NULL. They return 0, or negative after call_fail() or with a store's error, which ends the call. */
struct resource_hooks {
	/* In the write, before it: what schemas cannot say. `document` is what will be stored, and may be completed. */
	int (*create)(struct call *c, json_t *document);
	int (*update)(struct call *c, const struct doc *old, json_t *document); /* already merged */
	int (*remove)(struct call *c, const struct doc *old);
	/* In the place of the verb's own way to the store. save: old is NULL for a new one; d has its id, parent and
	 * name. It returns 1 when it has set d to what is stored, with its revision. */
	int (*load)(struct call *c, const struct resource *r, struct doc *ret_doc);
	int (*save)(struct call *c, struct doc *d, const struct doc *old, json_t *document);
	int (*drop)(struct call *c, const struct doc *d);
	/* In the write, after it. */
	int (*written)(struct call *c, const struct doc *d, const struct doc *old);
	/* Whenever one is taken away, also with what it lies below: not in a call. */
	int (*gone)(struct tx *tx, struct arena *a, const struct doc *d);
	/* What the caller sees, where that is not what is stored: `entity` is the stored document. -ENOENT
	 * leaves an entry out of a list. */
	int (*view)(struct call *c, const struct doc *d, json_t *entity);
	/* The same as text, where most need no parser. */
	struct str (*text)(struct call *c, const struct doc *d);
	/* Documents that are as if they were not there, and what stands for one in a path where that is not its key. */
	bool (*hides)(struct call *c, const struct doc *d);
	struct str (*key)(struct call *c, const struct doc *d);
	/* Entries of a list, where filters cannot say which. */
	bool (*takes)(struct call *c, const struct doc *d);
	/* What people know an entry of a list by, for those who look for it, where that is not its name. */
	struct str (*called)(struct call *c, const struct doc *d);
	/* One that has nothing below it, unlike others of its kind. */
	bool (*leaf)(struct call *c, const struct doc *d);
	/* What a list is made of, where that is not the parent's documents. */
	int (*segments)(struct call *c, struct segment **ret_list, size_t *ret_count);
	/* More links for the entity that was just written alone, by entity_link(). */
	void (*links)(struct call *c, const struct doc *d);
	/* What is shown in the place of a document: another one, of another resource. */
	int (*stand_in)(struct call *c, const struct resource **r, struct doc *d);
};

/* Whether the call is about a project, not only about an organization. */
static inline bool in_project(const struct call *c)
{
	return c->group.id.n;
}

int verb_list(struct call *c);
int verb_get(struct call *c);
int verb_create(struct call *c);
int verb_update(struct call *c);
int verb_replace(struct call *c);
int verb_delete(struct call *c);

/* The document that the path names. A singleton that was never written is its defaults, with revision 0. */
must_check int resource_load(struct call *c, const struct resource *r, struct doc *ret_doc);
/* The same of a singleton outside a call, by what it belongs to. */
must_check int resource_singleton(struct tx *tx, struct arena *a, const struct resource *r, struct str parent,
                                  struct doc *ret_doc);
/* The id of what the path's documents of the resource belong to; STR_NONE: to nothing. -ENOENT. */
must_check int resource_parent(struct call *c, const struct resource *r, struct str *ret_parent);
/* Writes one as the call's answer, or into the list that was begun: view, links, etag. */
must_check int resource_write(struct call *c, const struct resource *r, const struct doc *d);
/* Leaves of an entity what the version of the answer has. resource_write() does so itself. */
void answer_fit(const struct call *c, json_t *entity);
/* Some answers of the reference have what the forms of all providers, or kinds, share. What the form of one adds is
 * shown to whoever asks for it (X-Steward-Whole: true), and in a dialect, whose clients know it and would take what is
 * left out for a difference, unless they say false. */
bool answer_is_whole(const struct call *c);
/* Leaves what the form has; where the answer is whole, also what the form that the entity picks adds to it. */
void answer_form(const struct call *c, const struct schema *form, json_t *entity);
/* The document of that name; or a new one, of revision 0, which is not in the store yet. */
must_check int resource_named(struct call *c, const struct resource *r, struct str parent, struct str name,
                              struct doc *ret_doc);
/* Inserts, or updates what is there (old, or NULL): for the save hook. */
must_check int resource_put(struct tx *tx, const struct doc *d, const struct doc *old);
/* 412 unless If-Match is absent, "*", or names the revision. */
must_check int if_match(struct call *c, int64_t revision);
/* The resource's refusal of one more, for hooks that make several. */
must_check int resource_limit(struct call *c, const struct resource *r, struct str parent, int64_t more);
/* Removes every document below a parent: singletons and lists of all resources whose parent is that parameter, and what
 * lies below them. */
must_check int resource_delete_children(struct call *c, const char *parent_param, struct str parent_id);
/* Deletes a document, what lies below it, and what names it and goes with it. Nobody is there to be refused: where a
 * reference refuses, the caller has looked. */
must_check int resource_take_away(struct tx *tx, struct arena *a, const struct resource *r, const struct doc *d);
/* What lies below a document, at any depth. */
must_check int resource_delete_below(struct tx *tx, struct arena *a, const struct resource *r, struct str id);

/* A new document, made now; the name may be empty. */
must_check int doc_insert(struct tx *tx, const char *kind, struct str id, struct str parent, struct str name,
                          struct str body);
/* Inserts one of revision 0, and updates any other; its revision is then the new one. */
must_check int doc_put(struct tx *tx, struct doc *d);
/* The last document of a list. -ENOENT: it has none. */
must_check int doc_last(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct doc *ret_doc);

/* limits.c: in a write, before the inserts: 400 PROJECT_LIMIT_EXCEEDED, with the limit's name, the usage and the limit
 * as parameters, when the call's project may not have that many more of what the limit counts. The name is one of
 * api/projects.json that counts documents. */
must_check int limit_enforce(struct call *c, const char *limit_name, int64_t more);
const struct project_limit *limit_find(struct str name);
/* What the project has of all that the limit counts. */
must_check int limit_usage(struct call *c, const struct project_limit *l, int64_t *ret_used);

/* roles.c. The roles that a list of names gives, in an organization or in a project. 400, naming each by its path
 * (`path[i]`), for what is no role of that kind, and for a list that names none. Whether the caller may give them is
 * decided once it is known to whom: identity/gifts.h. Nulls in the list count for nothing. */
must_check int role_list_read(struct call *c, const json_t *names, const char *path, bool in_org, role_mask *ret_roles);
/* The same for a field of the body, in the call's scope. */
must_check int role_field_read(struct call *c, const char *field, role_mask *ret_roles);
/* "ORG_OWNER, ORG_MEMBER" */
struct str roles_text(struct arena *a, role_mask roles);
/* Which roles the call's event is about. */
void event_roles(struct call *c, role_mask roles);

/* links.c */
void links_setup(void);
/* The base URL is known: before anything is served. */
void links_base(const char *base_url);
void links_teardown(void);
/* The URL of an operation's path: parameters from the call by name, `key_param` from `key`. */
struct str link_href(struct call *c, const struct op *op, const char *key_param, struct str key);
/* The same for an entity whose path has parameters that the call's has not: those are fields of its body. */
struct str entity_href(struct call *c, const struct op *op, const char *key_param, struct str key, struct str body);
/* One entity: its body with "links". In a list only self; on its own also what lies below it and the caller may
 * read. */
void entity_write(struct call *c, struct buf *b, struct str body, const struct op *self, const char *key_param,
                  struct str key, bool in_list);
/* The same for an item of a list that is found by its id, which is letters and digits. */
void entity_write_by_id(struct call *c, struct buf *b, const struct doc *d, const struct resource *r);
/* One more link of the entity that was just written, to what does not lie below it. */
void entity_link(struct call *c, struct buf *b, const char *rel, struct str href);
/* The same to an operation of the catalog, where the caller may call it. */
void entity_link_op(struct call *c, const char *rel, const struct op *op, const char *key_param, struct str key);

/* lists.c: a list document. total: -1 when it was not counted; has_next tells about the page after this one. */
void list_begin(struct call *c);
/* Between the two: append entities to c->out with json_sep rules. */
void list_end(struct call *c, int64_t total, bool has_next);
/* Offset of the page asked for. */
int64_t list_offset(const struct call *c);

/* A list over several stored lists, single documents and such as are made for the list, in a stable order. */
struct segment {
	const char *kind;
	struct str parent; /* a whole list, or */
	struct str id;     /* one document, or */
	struct doc *docs;  /* these */
	size_t count;
	bool whole; /* every entry is in the list: a filter need not look */
};
/* For the segments hook: these documents (NULL: none), and no others. Returns 0. */
int segments_docs(struct call *c, struct doc *docs, size_t count, struct segment **ret_list, size_t *ret_count);
/* Writes one entry of a list: 0 or negative. */
typedef int segment_writer(struct call *c, const void *ctx, const struct doc *d);
/* For resources that are written as they are stored: their documents need no copy. ctx: the resource. */
segment_writer list_item_plain;
/* Whether an entry is in the list. */
typedef bool segment_filter(struct call *c, const void *ctx, const struct doc *d);
/* Writes the page, or the whole as an array where the answer is one. NULL takes all: only a filter has to look at what
 * the page skips. */
must_check int list_segments(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
                             segment_filter *takes, const void *ctx);

#endif
