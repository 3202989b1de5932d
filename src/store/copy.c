/* Copies one store into another, of either kind: table by table, one page of rows per transaction, in the order of the
 * key. Each page also writes a mark with the progress, so that an interrupted copy can continue. At the end both sides
 * are read again, and the rows of every table are counted and hashed. */
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
	{"meta", 1, {{"key", T}, {"value", T}}, "key <> '" META_COPY "'"},
};
/* clang-format on */
#undef T
#undef N
#undef B
#define TABLES (sizeof tables / sizeof *tables)

struct copy {
	struct copy_side from, to;
	int64_t total, done;
	store_copy_progress *progress;
	void *ctx;
};

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
	if (!number_cut(&s, ' ', &table) || !number_cut(&s, ' ', ret_done) || table > (int64_t)TABLES)
		return false;
	*ret_table = (size_t)table;
	*ret_has_key = s.n > 0;
	if (!s.n)
		return true;
	if (table == (int64_t)TABLES)
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
		c->progress(c->ctx, t->name, c->done, c->total);
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
		c->progress(c->ctx, "verify", (int64_t)i, (int64_t)TABLES);
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
	c->progress(c->ctx, "verify", (int64_t)TABLES, (int64_t)TABLES);
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

/* A source in use changes during the copy and cannot be compared; a source that is itself an unfinished copy is
 * incomplete. */
static int source_is_whole(struct copy *c, struct arena *a)
{
	struct str mark;
	int r = c->from.ops->busy(&c->from);
	if (r < 0)
		return r;
	r = c->from.ops->mark(&c->from, a, &mark);
	if (r == 0)
		fprintf(stderr, "steward: the source is a copy that was broken off: finish that one first\n");
	return r == 0 ? -EBUSY : r == -ENOENT ? 0 : r;
}

static int copy_all(struct copy *c)
{
	struct arena *a = arena_new();
	struct cell key[COPY_COLUMNS_MAX];
	struct str mark;
	size_t table = 0;
	bool has_key = false;
	int r = source_is_whole(c, a);
	if (r < 0) {
		arena_free(a);
		return r;
	}
	r = c->to.ops->mark(&c->to, a, &mark);
	if (r == 0 && !mark_read(mark, &table, &c->done, key, &has_key)) {
		fprintf(stderr, "steward: the target has a mark of a copy that this program does not know\n");
		r = -EPROTO;
	} else if (r == -ENOENT) {
		r = target_is_free(c);
	}
	for (size_t i = 0; r == 0 && i < TABLES; i++) {
		int64_t rows = 0;
		r = c->from.ops->count(&c->from, &tables[i], &rows);
		c->total += rows;
	}
	for (; r == 0 && table < TABLES; table++) {
		r = table_copy(c, table, key, has_key);
		has_key = false;
	}
	if (r == 0)
		r = copy_verify(c);
	if (r == 0)
		r = c->to.ops->write(&c->to, &tables[0], NULL, 0, STR_NONE);
	arena_free(a);
	return r;
}

int store_copy(const char *from, const char *to, store_copy_progress *progress, void *ctx, int64_t *ret_rows)
{
	struct copy c = {.progress = progress, .ctx = ctx};
	struct store_options make = {.url = to, .data_dir = to, .unfinished = true};
	struct store *made;
	/* store_open() creates the target's tables. */
	if (!store_url_is_remote(to) && !str_starts(str_of(to), STR("sqlite:")))
		make.url = NULL;
	int r = side_open(from, &c.from);
	if (r == 0)
		r = store_open(&make, &made);
	if (r == 0) {
		store_close(made);
		r = side_open(to, &c.to);
	}
	if (r == 0)
		r = copy_all(&c);
	if (c.from.ops)
		c.from.ops->close(&c.from);
	if (c.to.ops)
		c.to.ops->close(&c.to);
	if (r == 0)
		*ret_rows = c.total;
	return r;
}
