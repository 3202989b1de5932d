/* The texts of the log's archive: names of segments, marks, points of all sets, the index of hours, and the histories of
 * timelines. Any bytes: what is read and written again is read as the same; segments are in order; and of a history, each part
 * of the chain begins where the one before it ends. */
#include "base/buf.h"
#include "engine/postgres/archive/archive_index.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void name_holds(const char *name)
{
	char again[PG_WAL_NAME];
	uint32_t timeline = 0;
	uint64_t number = 0;
	enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
	HOLDS(kind == WAL_NONE || timeline > 0);
	if (kind != WAL_SEGMENT && kind != WAL_PARTIAL)
		return;
	pg_wal_name(timeline, number, kind == WAL_SEGMENT, again);
	HOLDS(strcmp(name, again) == 0);
}

static void marks_hold(struct str text)
{
	struct pg_marks m = {0}, again = {0};
	struct buf b = {0};
	pg_marks_parse(&m, text);
	for (size_t i = 0; i < m.count; i++)
		pg_mark_write(&b, &m.list[i]);
	pg_marks_parse(&again, buf_view(&b));
	HOLDS(again.count == m.count);
	for (size_t i = 0; i < m.count; i++) {
		const struct pg_mark *x = &m.list[i], *y = &again.list[i];
		HOLDS(x->kind == y->kind && x->from_ms == y->from_ms && x->to_ms == y->to_ms &&
		      x->still_ms == y->still_ms && x->timeline == y->timeline && x->lsn == y->lsn && x->end == y->end);
	}
	buf_free(&b);
	free(m.list);
	free(again.list);
}

static void common_holds(struct str line)
{
	struct pg_common *m = calloc(2, sizeof *m);
	struct buf b = {0};
	if (pg_common_parse(line, &m[0])) {
		HOLDS(m[0].count > 0 && m[0].count <= PG_SETS_MAX);
		pg_common_write(&b, &m[0]);
		HOLDS(b.n && b.p[b.n - 1] == '\n' && pg_common_parse((struct str){b.p, b.n - 1}, &m[1]));
		HOLDS(m[0].from_ms == m[1].from_ms && m[0].to_ms == m[1].to_ms && m[0].count == m[1].count);
		for (size_t i = 0; i < m[0].count; i++)
			HOLDS(strcmp(m[0].sets[i].name, m[1].sets[i].name) == 0 &&
			      m[0].sets[i].lsn == m[1].sets[i].lsn);
	}
	buf_free(&b);
	free(m);
}

static void index_holds(struct str text)
{
	struct pg_index x = {0}, y = {0};
	struct buf b = {0}, c = {0};
	pg_index_parse(&x, text);
	pg_index_write(&b, &x);
	pg_index_parse(&y, buf_view(&b));
	pg_index_write(&c, &y);
	HOLDS(str_eq(buf_view(&b), buf_view(&c)));
	buf_free(&b);
	buf_free(&c);
	pg_index_free(&x);
	pg_index_free(&y);
}

static void chain_holds(const char *history, uint32_t timeline)
{
	struct pg_chain c = {0};
	pg_chain_parse(&c, timeline, history);
	HOLDS(c.count > 0 && c.parts[c.count - 1].timeline == timeline && c.parts[0].begin == 0);
	HOLDS(c.parts[c.count - 1].end == UINT64_MAX && pg_chain_has(&c, timeline, UINT64_MAX));
	for (size_t i = 1; i < c.count; i++) {
		HOLDS(c.parts[i - 1].timeline < c.parts[i].timeline && c.parts[i - 1].end == c.parts[i].begin);
		HOLDS(c.parts[i - 1].begin <= c.parts[i - 1].end);
	}
	const struct pg_chain_part *part = pg_chain_part(&c, UINT64_MAX);
	HOLDS(part == &c.parts[c.count - 1] && pg_chain_part(&c, 0));
	free(c.parts);
}

/* Names as they are listed: each once, in order, and found again. */
static void segments_hold(struct str names)
{
	struct pg_segments s = {0};
	while (names.n) {
		struct str one;
		char name[PG_WAL_NAME];
		uint32_t timeline;
		uint64_t number;
		str_cut(names, '\n', &one, &names);
		str_copy(one, name, sizeof name);
		name_holds(name);
		enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
		if (kind != WAL_SEGMENT && kind != WAL_PARTIAL)
			continue;
		pg_segments_add(&s, timeline, number, kind == WAL_SEGMENT);
		const struct pg_segment *found = pg_segments_find(&s, timeline, number);
		HOLDS(found && (kind == WAL_PARTIAL || found->complete));
	}
	for (size_t i = 1; i < s.count; i++)
		HOLDS(s.list[i - 1].number < s.list[i].number ||
		      (s.list[i - 1].number == s.list[i].number && s.list[i - 1].timeline < s.list[i].timeline));
	free(s.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size), line, rest = input;
	char *exact = fuzz_copy(input), *z = calloc(1, input.n + 1);
	memcpy(z, input.p ? input.p : "", input.n);
	name_holds(z);
	marks_hold((struct str){exact, input.n});
	index_holds((struct str){exact, input.n});
	segments_hold((struct str){exact, input.n});
	chain_holds(z, 5);
	chain_holds(z, UINT32_MAX);
	chain_holds(NULL, 1);
	for (bool more = true; more;) {
		more = str_cut(rest, '\n', &line, &rest);
		common_holds(line);
	}
	free(exact);
	free(z);
	return 0;
}
