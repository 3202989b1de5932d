/* Copies one store into another, of either kind: table by table, one page of rows per transaction, in the order of the
 * key. Each page also writes a mark with the progress, so that an interrupted copy can continue. At the end both sides
 * are read again, and the rows of every table are counted and hashed.
 *
 * Then the source is marked as moved, and refused from there on; what depends on the kind of store is settled in the
 * target by the caller; and only then does the target lose its mark. At no time can a service start on both. */
#include "store/copy.h"

#include "base/buf.h"
#include "base/id.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define T CELL_TEXT
#define N CELL_NUMBER
#define B CELL_BYTES
/* clang-format off */
static const struct copy_table tables[] = {
	{"doc", 2, {{"kind", T}, {"id", T}, {"parent", T}, {"name", T}, {"seq", N}, {"rev", N}, {"created_ms", N},
	            {"body", T}, {"secret", T}}, NULL},
	{"list", 2, {{"kind", T}, {"parent", T}, {"next_seq", N}, {"count", N}, {"head", N}}, NULL},
	{"list_block", 4, {{"kind", T}, {"parent", T}, {"level", N}, {"block", N}, {"count", N}}, NULL},
	{"ref", 2, {{"kind", T}, {"value", T}, {"id", T}}, NULL},
	{"event", 1, {{"seq", N}, {"id", T}, {"org_id", T}, {"group_id", T}, {"type", T}, {"created_ms", N},
	              {"body", T}, {"prev_hash", B}, {"hash", B}, {"cluster", T}, {"raw", T}, {"org_pos", N},
	              {"group_pos", N}}, NULL},
	{"job", 1, {{"n", N}, {"id", T}, {"kind", T}, {"subject", T}, {"args", T}, {"state", T}, {"step", N},
	            {"attempt", N}, {"progress", T}, {"due_ms", N}, {"lease_owner", T}, {"lease_until_ms", N},
	            {"fence", N}, {"created_ms", N}, {"updated_ms", N}, {"error", T}, {"host", T},
	            {"tenant", T}}, NULL},
	{"answer", 2, {{"caller", T}, {"key", T}, {"created_ms", N}, {"fingerprint", T}, {"answer", T}}, NULL},
	{"limit_override", 2, {{"set_id", T}, {"scope", T}, {"capacity", N}, {"refill", N}}, NULL},
	{"meta", 1, {{"key", T}, {"value", T}}, "key NOT IN ('" META_COPY "', '" META_MOVED "')"},
};
/* clang-format on */
#undef T
#undef N
#undef B
#define TABLES (sizeof tables / sizeof *tables)
/* In the mark, instead of a table's number: all is copied and was compared; what is left is to settle. */
#define COPY_COMPARED (TABLES + 1)
#define PLACE_TEXT 512

struct copy {
	struct copy_side from, to;
	int64_t total, done;
	const struct store_copy_options *options;
	char place[PLACE_TEXT]; /* the target, as the source's mark names it */
};

static void copy_tell(const struct copy *c, const char *what, int64_t done, int64_t total)
{
	c->options->progress(c->options->ctx, what, done, total);
}

unsigned copy_columns(const struct copy_table *t)
{
	unsigned n = 0;
	while (n < COPY_COLUMNS_MAX && t->columns[n].name)
		n++;
	return n;
}

/* "kind, id, parent": the first `count` columns. `n` is the name of the column with a job's place in the queue. */
static void names_write(char *ret_text, size_t size, const struct copy_table *t, unsigned count, const char *n)
{
	size_t at = 0;
	for (unsigned i = 0; i < count && at < size; i++) {
		const char *name = t->columns[i].name;
		at += (size_t)snprintf(ret_text + at, size - at, "%s%s", i ? ", " : "",
		                       strcmp(name, "n") == 0 ? n : name);
	}
}

/* "$1, $2": both back ends understand this form. */
static void places_write(char *ret_text, size_t size, unsigned count)
{
	size_t at = 0;
	for (unsigned i = 1; i <= count && at < size; i++)
		at += (size_t)snprintf(ret_text + at, size - at, "%s$%u", i > 1 ? ", " : "", i);
}

void copy_select(char ret_sql[COPY_SQL], const struct copy_table *t, bool after, const char *n)
{
	char names[512], keys[128], places[64];
	names_write(names, sizeof names, t, copy_columns(t), n);
	names_write(keys, sizeof keys, t, t->keys, n);
	places_write(places, sizeof places, t->keys);
	int at = snprintf(ret_sql, COPY_SQL, "SELECT %s FROM %s WHERE %s", names, t->name,
	                  t->except ? t->except : "true");
	if (after)
		at += snprintf(ret_sql + at, COPY_SQL - (size_t)at, " AND (%s) > (%s)", keys, places);
	snprintf(ret_sql + at, COPY_SQL - (size_t)at, " ORDER BY %s LIMIT %d", keys, COPY_PAGE);
}

void copy_insert(char ret_sql[COPY_SQL], const struct copy_table *t, const char *n)
{
	char names[512], places[128];
	names_write(names, sizeof names, t, copy_columns(t), n);
	places_write(places, sizeof places, copy_columns(t));
	snprintf(ret_sql, COPY_SQL, "INSERT INTO %s (%s) VALUES (%s)", t->name, names, places);
}

void copy_count(char ret_sql[COPY_SQL], const struct copy_table *t)
{
	snprintf(ret_sql, COPY_SQL, "SELECT count(*) FROM %s WHERE %s", t->name, t->except ? t->except : "true");
}

static int side_open(const char *place, struct copy_side *side)
{
#ifdef STORE_HAS_POSTGRES
	if (store_url_is_remote(place))
		side->ops = &postgres_copy_ops;
	else
#endif
		side->ops = &sqlite_copy_ops;
	return side->ops->open(place, side);
}

/* The mark: the table's number, the rows done in all, and the last key, each text with its length: "2 500 1:a
 * 3:xyz". */
static struct str mark_make(struct arena *a, size_t table, int64_t done, const struct copy_table *t,
                            const struct cell *row)
{
	struct buf b = {0};
	buf_printf(&b, "%zu %lld", table, (long long)done);
	for (unsigned i = 0; row && i < t->keys; i++) {
		if (t->columns[i].type == CELL_NUMBER)
			buf_printf(&b, " %lld", (long long)row[i].number);
		else
			buf_printf(&b, " %zu:%.*s", row[i].text.n, STR_ARG(row[i].text));
	}
	struct str mark = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return mark;
}

static bool number_cut(struct str *s, char end, int64_t *ret_value)
{
	size_t n = 0;
	uint64_t v;
	while (n < s->n && s->p[n] != end && s->p[n] != ' ')
		n++;
	if (!str_to_u64((struct str){s->p, n}, INT64_MAX, &v))
		return false;
	*ret_value = (int64_t)v;
	n += n < s->n;
	*s = (struct str){s->p + n, s->n - n};
	return true;
}

/* False when the mark is not ours. Without a key the table starts from its beginning. */
static bool mark_read(struct str s, size_t *ret_table, int64_t *ret_done, struct cell ret_key[COPY_COLUMNS_MAX],
                      bool *ret_has_key)
{
	int64_t table, n;
	if (!number_cut(&s, ' ', &table) || !number_cut(&s, ' ', ret_done) || table > (int64_t)COPY_COMPARED)
		return false;
	*ret_table = (size_t)table;
	*ret_has_key = s.n > 0;
	if (!s.n)
		return true;
	if (table >= (int64_t)TABLES)
		return false;
	for (unsigned i = 0; i < tables[table].keys; i++) {
		struct cell *c = &ret_key[i];
		*c = (struct cell){0};
		if (tables[table].columns[i].type == CELL_NUMBER) {
			if (!number_cut(&s, ' ', &c->number))
				return false;
			continue;
		}
		if (!number_cut(&s, ':', &n) || (uint64_t)n > s.n)
			return false;
		c->text = (struct str){s.p, (size_t)n};
		size_t skip = (size_t)n + ((size_t)n < s.n);
		s = (struct str){s.p + skip, s.n - skip};
	}
	return true;
}

static int table_copy(struct copy *c, size_t number, struct cell *key, bool has_key)
{
	const struct copy_table *t = &tables[number];
	struct arena *a = arena_new(), *next = arena_new();
	const struct cell *after = has_key ? key : NULL;
	unsigned columns = copy_columns(t);
	size_t rows = COPY_PAGE;
	int r = 0;
	while (r == 0 && rows == COPY_PAGE) {
		struct cell *cells;
		r = c->from.ops->read(&c->from, t, after, next, &cells, &rows);
		if (r < 0 || rows == 0)
			break;
		c->done += (int64_t)rows;
		after = &cells[(rows - 1) * columns];
		r = c->to.ops->write(&c->to, t, cells, rows, mark_make(next, number, c->done, t, after));
		copy_tell(c, t->name, c->done, c->total);
		/* The last key lives until the next page is read. */
		struct arena *old = a;
		a = next;
		next = old;
		arena_reset(next);
	}
	arena_free(a);
	arena_free(next);
	return r;
}

struct digest {
	int64_t rows;
	unsigned char hash[32];
};

static void digest_number(EVP_MD_CTX *ctx, uint64_t v)
{
	unsigned char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(v >> (56 - 8 * i));
	EVP_DigestUpdate(ctx, bytes, sizeof bytes);
}

/* Lengths before texts, so that no two tables give the same bytes. */
static void digest_cell(EVP_MD_CTX *ctx, const struct cell *c, enum cell_type type)
{
	digest_number(ctx, c->null);
	if (c->null)
		return;
	if (type == CELL_NUMBER) {
		digest_number(ctx, (uint64_t)c->number);
		return;
	}
	digest_number(ctx, c->text.n);
	EVP_DigestUpdate(ctx, c->text.p, c->text.n);
}

static int digest_make(struct copy_side *side, const struct copy_table *t, struct digest *ret_digest)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct arena *a = arena_new(), *next = arena_new();
	const struct cell *after = NULL;
	unsigned columns = copy_columns(t);
	size_t rows = COPY_PAGE;
	int r = EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) ? 0 : -EIO;
	*ret_digest = (struct digest){0};
	while (r == 0 && rows == COPY_PAGE) {
		struct cell *cells = NULL;
		r = side->ops->read(side, t, after, next, &cells, &rows);
		for (size_t i = 0; r == 0 && i < rows * columns; i++)
			digest_cell(ctx, &cells[i], t->columns[i % columns].type);
		ret_digest->rows += r == 0 ? (int64_t)rows : 0;
		after = rows ? &cells[(rows - 1) * columns] : NULL;
		struct arena *old = a;
		a = next;
		next = old;
		arena_reset(next);
	}
	EVP_DigestFinal_ex(ctx, ret_digest->hash, NULL);
	EVP_MD_CTX_free(ctx);
	arena_free(a);
	arena_free(next);
	return r;
}

static int copy_verify(struct copy *c)
{
	for (size_t i = 0; i < TABLES; i++) {
		struct digest from, to;
		copy_tell(c, "verify", (int64_t)i, (int64_t)TABLES);
		int r = digest_make(&c->from, &tables[i], &from);
		if (r == 0)
			r = digest_make(&c->to, &tables[i], &to);
		if (r < 0)
			return r;
		if (from.rows != to.rows || memcmp(from.hash, to.hash, sizeof from.hash) != 0) {
			fprintf(stderr,
			        "steward: the copy differs in %s (%lld rows in the source, %lld in the copy): was the "
			        "source "
			        "in use? Empty the target and copy again\n",
			        tables[i].name, (long long)from.rows, (long long)to.rows);
			return -EBADMSG;
		}
	}
	copy_tell(c, "verify", (int64_t)TABLES, (int64_t)TABLES);
	return 0;
}

/* The target must be empty, or contain a part of the same copy. */
static int target_is_free(struct copy *c)
{
	for (size_t i = 0; i < TABLES; i++) {
		int64_t rows = 0;
		int r = c->to.ops->count(&c->to, &tables[i], &rows);
		if (r < 0)
			return r;
		if (rows) {
			fprintf(stderr, "steward: the target is not empty (%s has %lld rows): give an empty one\n",
			        tables[i].name, (long long)rows);
			return -EEXIST;
		}
	}
	return 0;
}

/* "postgresql://steward@db.example.com/steward", or a whole path: without the password, and what may hold one. */
static void place_name(const char *place, char ret_name[PLACE_TEXT])
{
	const char *slashes = strstr(place, "://"), *at = slashes ? strrchr(place, '@') : NULL;
	if (!store_url_is_remote(place)) {
		const char *path = str_starts(str_of(place), STR("sqlite:")) ? place + 7 : place;
		char *whole = realpath(path, NULL);
		snprintf(ret_name, PLACE_TEXT, "%s", whole ? whole : path);
		free(whole);
		return;
	}
	const char *user = slashes ? slashes + 3 : place;
	size_t scheme = (size_t)(user - place), name = at ? strcspn(user, ":@") : 0;
	const char *rest = at ? at : user;
	snprintf(ret_name, PLACE_TEXT, "%.*s%.*s%.*s", (int)scheme, place, (int)name, user, (int)strcspn(rest, "?"),
	         rest);
}

int copy_moved_refuse(struct str moved)
{
	fprintf(stderr,
	        "steward: this store was moved to %.*s by `steward store copy`: what it says of the databases is old, "
	        "and a service on it would take them from the one there. Name that store with --store. To use this one "
	        "again, when no service runs on the other: steward store reopen --from PLACE\n",
	        STR_ARG(moved));
	return -EBUSY;
}

/* A source in use changes during the copy and cannot be compared; a source that is itself an unfinished copy is
 * incomplete; one that was moved is old, unless it is this very copy that was broken off at its end. */
static int source_is_whole(struct copy *c, struct arena *a, bool *ret_moved)
{
	struct str mark, moved, unfinished;
	int r = c->from.ops->busy(&c->from);
	if (r < 0)
		return r;
	r = c->from.ops->noted(&c->from, a, META_COPY, &mark);
	if (r == 0)
		fprintf(stderr, "steward: the source is a copy that was broken off: finish that one first\n");
	if (r != -ENOENT)
		return r == 0 ? -EBUSY : r;
	r = c->from.ops->noted(&c->from, a, META_MOVED, &moved);
	*ret_moved = r == 0;
	if (r == 0 && (!str_is(moved, c->place) || c->to.ops->noted(&c->to, a, META_COPY, &unfinished) < 0))
		return copy_moved_refuse(moved);
	return r == -ENOENT ? 0 : r;
}

/* Where the copy begins or goes on. */
struct copy_place {
	size_t table;
	bool has_key;
	struct cell key[COPY_COLUMNS_MAX];
};

static int place_find(struct copy *c, struct arena *a, bool moved, struct copy_place *ret_place)
{
	struct str mark;
	int r = c->to.ops->noted(&c->to, a, META_COPY, &mark);
	if (r == -ENOENT)
		return target_is_free(c);
	if (r < 0)
		return r;
	if (!mark_read(mark, &ret_place->table, &c->done, ret_place->key, &ret_place->has_key)) {
		fprintf(stderr, "steward: the target has a mark of a copy that this program does not know\n");
		return -EPROTO;
	}
	if (ret_place->table == COPY_COMPARED && !moved) {
		fprintf(stderr,
		        "steward: the source was used again since it was copied: empty the target and copy again\n");
		return -EBADMSG;
	}
	return 0;
}

/* Another copy of the same source, which ran beside this one, may have come first: then that is the one to be used. And
 * a service may have been started on the source since this copy looked for one: it goes on there, and one on the target
 * would know nothing of what it acknowledges. */
static int source_leave(struct copy *c, struct arena *a, bool moved)
{
	struct str there;
	int r = c->from.ops->claim(&c->from, META_MOVED, str_of(c->place));
	if (r == -EEXIST)
		return c->from.ops->noted(&c->from, a, META_MOVED, &there) == 0 ? copy_moved_refuse(there) : r;
	if (r < 0 || moved)
		return r;
	r = c->from.ops->busy(&c->from);
	if (r < 0 && c->from.ops->note(&c->from, META_MOVED, STR_NONE) < 0)
		fprintf(stderr, "steward: the mark of the source is to be taken back with `steward store reopen`\n");
	return r;
}

/* What the kind of the target needs, by its caller; afterwards the two sides differ and cannot be compared again. */
static int copy_settle(struct copy *c, struct arena *a, const char *to, bool moved)
{
	struct store_options o = {.url = to, .data_dir = to, .unfinished = true};
	struct store *made;
	struct str mark = mark_make(a, COPY_COMPARED, c->done, NULL, NULL);
	int r = source_leave(c, a, moved);
	if (r == 0)
		r = c->to.ops->write(&c->to, &tables[0], NULL, 0, mark);
	if (r < 0 || !c->options->settle)
		return r;
	if (!store_url_is_remote(to) && !str_starts(str_of(to), STR("sqlite:")))
		o.url = NULL;
	r = store_open(&o, &made);
	if (r < 0)
		return r;
	r = c->options->settle(c->options->ctx, made);
	store_close(made);
	return r;
}

static int copy_all(struct copy *c, struct arena *a, const char *to)
{
	struct copy_place at = {0};
	bool moved = false;
	int r = source_is_whole(c, a, &moved);
	if (r == 0)
		r = place_find(c, a, moved, &at);
	for (size_t i = 0; r == 0 && i < TABLES; i++) {
		int64_t rows = 0;
		r = c->from.ops->count(&c->from, &tables[i], &rows);
		c->total += rows;
	}
	for (; r == 0 && at.table < TABLES; at.table++) {
		r = table_copy(c, at.table, at.key, at.has_key);
		at.has_key = false;
	}
	if (r == 0 && at.table < COPY_COMPARED)
		r = copy_verify(c);
	if (r == 0)
		r = copy_settle(c, a, to, moved);
	return r < 0 ? r : c->to.ops->write(&c->to, &tables[0], NULL, 0, STR_NONE);
}

int store_copy(const char *from, const char *to, const struct store_copy_options *options, int64_t *ret_rows)
{
	struct copy c = {.options = options};
	struct store_options make = {.url = to, .data_dir = to, .unfinished = true};
	struct arena *a = arena_new();
	struct store *made;
	/* store_open() creates the target's tables. */
	if (!store_url_is_remote(to) && !str_starts(str_of(to), STR("sqlite:")))
		make.url = NULL;
	int r = side_open(from, &c.from);
	if (r == 0)
		r = store_open(&make, &made);
	if (r == 0) {
		store_close(made);
		place_name(to, c.place);
		r = side_open(to, &c.to);
	}
	if (r == 0)
		r = copy_all(&c, a, to);
	if (c.from.ops)
		c.from.ops->close(&c.from);
	if (c.to.ops)
		c.to.ops->close(&c.to);
	arena_free(a);
	if (r == 0)
		*ret_rows = c.total;
	return r;
}

int store_reopen(const char *place)
{
	struct copy_side side = {0};
	struct arena *a = arena_new();
	struct str moved;
	int r = side_open(place, &side);
	if (r == 0)
		r = side.ops->noted(&side, a, META_MOVED, &moved);
	if (r == -ENOENT && side.tx)
		fprintf(stderr, "steward: this store was not moved: there is nothing to take back\n");
	if (r == 0)
		r = side.ops->note(&side, META_MOVED, STR_NONE);
	side.ops->close(&side);
	arena_free(a);
	return r;
}
