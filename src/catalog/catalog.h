/* The operations, as a table that the build makes from api/. The only place where code learns of a path, a role, a
 * bucket or a version. */
#ifndef STEWARD_CATALOG_CATALOG_H
#define STEWARD_CATALOG_CATALOG_H

#include "catalog/schema.h"

#define API_BASE "/api/svc/v2"
#define API_BASE_V1 "/api/svc/v1.0"
#define API_MEDIA "application/vnd.svc."

enum method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_HEAD, METHOD_COUNT };

enum bucket_scope { SCOPE_GROUP, SCOPE_ORGANIZATION, SCOPE_USER, SCOPE_IP };

struct bucket_set {
	const char *id, *name;
	enum bucket_scope scope;
	unsigned capacity, refill, seconds;
};

/* What the membership gate looks up before anything else is told. */
enum tenant {
	TENANT_NONE,       /* no scope in the path: any authenticated caller */
	TENANT_ORG,        /* {orgId} */
	TENANT_GROUP,      /* {groupId} */
	TENANT_FEDERATION, /* {federationSettingsId}: membership in an organization that is connected to it */
	TENANT_PUBLIC      /* no credentials needed */
};

typedef uint64_t role_mask; /* bit i: role i of role_names */

struct param {
	const char *name;
	const char *description;
	const struct schema *schema;
	bool required;
	const char *example;   /* JSON, or NULL */
	const char *not_found; /* of a path parameter: the code of the 404 when it names nothing */
};

struct op_version {
	const char *date;   /* "2023-01-01" */
	const char *sunset; /* date after which it may go, or NULL: a version with a sunset is deprecated */
	const struct schema *request, *response;        /* or NULL */
	const char *request_example, *response_example; /* JSON, or NULL */
};

enum { PRODUCES_JSON = 1, PRODUCES_GZIP = 2, PRODUCES_CSV = 4, PRODUCES_EVENTS = 8 };

struct call;
struct resource;

/* A query parameter that leaves out the entries of a list whose field has another value, or does not begin with it. */
struct op_filter {
	const char *param, *field;
	bool prefix;           /* upper and lower case are the same */
	bool any;              /* the parameter is a list: one of its values */
	const char *otherwise; /* the parameter's default, or NULL */
};

/* What somebody is asked before it is done: nothing, whether they are sure, the name of what will be gone. */
enum danger { DANGER_NONE, DANGER_CONFIRM, DANGER_NAME };

/* What an operation does. Exactly one of: a generic verb on a resource, or a function of its family. NULL: unbuilt. */
typedef int (*op_handler)(struct call *c);

struct op {
	const char *id, *tag, *summary, *description;
	const char *path; /* below the base: "/groups/{groupId}" */
	enum method method;
	enum tenant tenant;
	const struct bucket_set *set;
	role_mask roles; /* any of them, or one that includes it; 0 only where open_to_all */
	bool open_to_all, paginated, request_required, deprecated, writes;
	unsigned char produces;
	short success, other_success;
	const struct param *path_params, *query_params, *header_params;
	unsigned char path_param_count, query_param_count, header_param_count, version_count, filter_count;
	const struct op_version *versions; /* oldest first */
	const struct resource *resource;   /* or NULL */
	const char *by_name; /* or NULL: the path parameter that is the resource's name, in place of its key */
	const struct op_filter *filters; /* of a list */
	op_handler handler;              /* NULL: answers 501 */
	/* Or NULL: what is too slow for the loop and the write; runs after the gates on a thread of its own. */
	op_handler prepare;
	bool slow;                  /* a read that may take long: the handler runs on a worker */
	bool kept;                  /* an answer is given again while nothing changes: call/kept_answer.h */
	bool as_read;               /* a PATCH that takes what its GET shows, and parts of it: SCHEMA_AS_READ */
	bool while_locked;          /* also for an organization that is locked, although it writes */
	bool on_v1;                 /* also served under the v1.0 prefix */
	size_t body_max;            /* 0: the default */
	const char *event;          /* type of the event that it writes, or NULL */
	const char *body_org_field; /* the body names the organization there, and in it one of body_roles is needed */
	role_mask body_roles;
	const struct op *link_from; /* or NULL: the GET whose entity is also found here, by its field link_field */
	const char *link_field;
	bool may_be_absent; /* it is not always there: its parent links to it only by a handler that has looked */
	bool gives; /* somebody has more roles after it: identity/gifts.h refuses gifts of rows that do not say so */
	/* Leaves a way in behind (a credential, a member, an identity provider): a browser's session needs a fresh
	 * proof of who is there for it. */
	bool lasting;
	enum danger danger;
	bool final; /* cannot be undone */
	/* How the client calls it. */
	const char *command;        /* "database-users create": two or three words */
	const char *const *aliases; /* other commands for the same */
	const char *const *columns; /* of a table of its answer: paths of fields in an entry; none: derived */
	unsigned char alias_count, column_count;
	const struct op *polls; /* or NULL: the GET whose state tells when the work is done; of such a GET itself */
};

/* The first words of commands, sorted. */
struct command_family {
	const char *name, *description;
};
extern const struct command_family command_families[];
extern const unsigned command_family_count;

/* What the states of resources mean to somebody who waits, each list ended by NULL: the fields that hold a state, the
 * best first; states that pass by themselves; states that are a failure; states that are the end of a deleted thing. */
extern const char *const state_fields[], *const state_moving[], *const state_failed[], *const state_gone[];
/* Of what has no such field: flags of which one that is true is its state, and the field that is there once it is
 * done. */
extern const char *const state_flags[], *const state_finished;

/* Groups of operations in the OpenAPI document. */
struct catalog_tag {
	const char *name, *description;
};
extern const struct catalog_tag catalog_tags[];
extern const unsigned catalog_tag_count;

/* A limit that each project has. Rows come from "projectLimits" in api/. */
struct project_limit {
	const char *name;
	int64_t least, standard, most; /* standard -1: none until one is set */
	const char *counts[2];         /* store kinds whose documents in the project are the usage, or NULL */
};
extern const struct project_limit project_limits[];
extern const unsigned project_limit_count;

/* What a refusal says. In the text {name}, {count}, {most}, {kind} and {user} are filled in. code NULL: the usual
 * one. */
struct resource_refusal {
	short status;
	const char *code, *text;
};

/* A field that the service fills: JSON, or one of "@now" (a date), "@org", "@group", "@parent", "@caller" (its id),
 * "@user" (an object with the caller's id and name). */
struct resource_fill {
	const char *field, *value;
};

/* A field of the events about a resource, from a field of its document. */
struct resource_event {
	const char *name, *field;
};

/* The event of a field's change; where it was switched off, another (or NULL). */
struct resource_change {
	const char *field, *event, *event_off;
};

/* A document names another: in its field, or in that field of each element of a list (field NULL: the elements are the
 * names). Both have the same parent. */
struct resource_ref {
	const char *list, *field;
	const struct resource *to; /* by its key */
	bool cascades; /* what names something goes with it; otherwise the thing stays as long as it is named */
	struct resource_refusal missing, in_use; /* code NULL: the family looks itself */
};

/* A kind of document that the generic verbs serve. Rows come from "resources" in api/; kit/verbs.h says what each
 * does. */
struct resource {
	const char *kind;                     /* in the store */
	const char *parent_param, *key_param; /* path parameters; key_param NULL: a singleton of its parent */
	const struct resource *above; /* the resource that it lies below, where that is no organization or project */
	const struct resource *above_else;  /* or NULL: or below this one, found by the same key */
	bool key_is_name;                   /* the key is the unique name, not the id */
	bool shallow;                       /* an update replaces whole fields, also objects */
	bool bare;                          /* written without links, as its schema has none */
	bool unchecked;                     /* more is stored than the schema has: the hooks have checked it */
	const char *name_field;             /* field that is unique within the parent, or NULL */
	const char *id_field;               /* field that carries the id in the document, or NULL */
	const struct schema *schema;        /* of the stored document */
	const struct op *self;              /* the GET of one; NULL: there is none, and no links */
	const struct op *group_self;        /* the same in a call below a project, where that is another, or NULL */
	const struct resource_hooks *hooks; /* or NULL */
	const char *defaults;               /* JSON object: what a singleton is before it is first written, or NULL */
	int64_t most;                       /* documents of one parent; 0: no limit */
	const char *project_limit;          /* or NULL: the limit of the project that counts them */
	struct resource_refusal limit, duplicate;
	struct resource_refusal busy; /* of a change that its state does not allow */
	const char *holds[2];         /* kinds of documents below it, with which it is not deleted; or NULL */
	struct resource_refusal held; /* of that */
	const char *not_found;        /* the code of the 404 */
	/* Or NULL: where one of this kind has the name, it is refused so in the place of the 404. */
	const char *elsewhere_kind;
	struct resource_refusal elsewhere;
	const struct resource_fill *fill, *touch; /* when it is made; with each change */
	const struct resource_event *events;
	const char *const *sealed; /* fields that are kept encrypted and never given out */
	const struct resource_ref *refs;
	const struct resource_change *changes;
	unsigned char fill_count, touch_count, event_count, sealed_count, ref_count, change_count;
	bool no_etag; /* what is shown is made of more than the document, whose revision says nothing then */
};

extern const struct op catalog_ops[];
extern const unsigned catalog_op_count;
extern const struct bucket_set catalog_sets[];
extern const unsigned catalog_set_count;
extern const struct resource *const catalog_resources[];
extern const unsigned catalog_resource_count;
extern const char *const catalog_dates[]; /* all version dates, oldest first */
extern const unsigned catalog_date_count;
extern const char catalog_current[]; /* "2025-03-12" */

/* Roles. closure[i]: the roles that role i includes, itself too. in_project[i]: the project roles that organization
 * role i gives in every project, closed. */
extern const char *const role_names[];
extern const char *const role_descriptions[];
extern const unsigned role_count;
extern const role_mask role_closure[];
extern const role_mask role_in_project[];
extern const role_mask role_org_mask; /* the organization roles */
/* Who gives roles: owners any, managers any but owners' and not to themselves. The base comes with any role in a
 * project. */
extern const role_mask role_owner_mask, role_manager_mask, role_base_mask;
/* -1 when there is no such role. */
int role_find(struct str name);

#define PATH_PARAMS_MAX 8

struct dialect; /* catalog/dialect.h */

struct match {
	const struct op *op;                /* NULL: no operation for that method */
	unsigned allowed;                   /* bit per enum method that the path has, HEAD where GET; 0: no such path */
	struct str params[PATH_PARAMS_MAX]; /* percent-decoded, in the order of the path, in our words */
	bool v1;
	const struct dialect *dialect; /* whose prefix the path has; NULL: our own */
};

/* Builds the path trees, one for each dialect. Before the threads start; negative when two rows collide. */
must_check int catalog_setup(void);
void catalog_teardown(void);

/* The row for a method and a path with its base prefix, still percent-encoded. */
void catalog_match(enum method method, struct str path, struct arena *arena, struct match *ret_match);

/* Whether an operation is served below that base: below our own v1 only some are, below a dialect's all. */
bool op_is_on(const struct op *op, bool v1, const struct dialect *d);

must_check bool method_parse(struct str text, enum method *ret_method);
const char *method_name(enum method m);
const struct op *catalog_op(const char *operation_id);

#endif
