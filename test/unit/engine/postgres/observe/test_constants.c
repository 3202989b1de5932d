/* Texts of statements: no constant is left, and nothing else is changed. */
#include "base/arena.h"
#include "check.h"
#include "engine/postgres/observe/constants.h"

#include <stdlib.h>

static void test_hidden(struct arena *a)
{
	static const char *const texts[][2] = {
	        {"", ""},
	        {"select 1", "select $1"},
	        {"select * from people where ssn = '123' and age > 42",
	         "select * from people where ssn = $1 and age > $2"},
	        {"select $2, 'a', $7", "select $2, $8, $7"},
	        {"select 'it''s', E'a\\'b', b'01', X'ff', n'x', U&'\\0061', u&\"b\"",
	         "select $1, $2, $3, $4, $5, $6, u&\"b\""},
	        {"select $$a$b$$, $t$ $$ $t$, $1", "select $2, $3, $1"},
	        {"select 1.5, .5, 1e-3, 1E+5x, -2, a1, a$1, \xc3\xa9"
	         "2",
	         "select $2, $3, $4, $5, -$6, a1, a$1, \xc3\xa9"
	         "2"},
	        {"select /* 'a' 1 */ 5 -- 'b'\n, 6", "select /* 'a' 1 */ $1 -- 'b'\n, $2"},
	        {"select \"it's 5\", 'x' from \"a\"\"1\"", "select \"it's 5\", $1 from \"a\"\"1\""},
	        /* What cannot be read is not shown. */
	        {"select 'it\\'s secret 5'", "select $1"},
	        {"select 'cut of", "select $1"},
	        {"select $a$ cut of", "select $1"},
	        {"select 5 /* cut of", "select $1 /* cut of"},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK(strcmp(pg_constants_hide(a, texts[i][0]), texts[i][1]) == 0);
}

/* As pg_stat_statements leaves them: what is no constant stays. */
static void test_kept(struct arena *a)
{
	static const char *const texts[] = {
	        "select a, count(*) from t where b = $1 group by 1 order by 2 desc, 1 limit $2",
	        "select string_agg(a, $1 order by 1), cast(a as numeric(10, 2)), b::varchar(20)",
	        "select c::public.geometry(Point, 4326)",
	        "select * from f($1) as x(a numeric(5), b character varying(7), c timestamp(3) with time zone)",
	        "with q as materialized (select a from t order by 1) select * from q",
	        "select sum(a) over (partition by b order by c)",
	        ")))",
	        "select f(a) order by",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK(strcmp(pg_constants_hide(a, texts[i]), texts[i]) == 0);
	CHECK(strcmp(pg_constants_hide(
	                     a,
	                     "with q as materialized (select 5) select 6 from t as x join f(7) on true order by x + 8"),
	             "with q as materialized (select $1) select $2 from t as x join f($3) on true order by x + $4") ==
	      0);
	CHECK(strcmp(pg_constants_hide(a, "select (select a order by 1), 5 where b in (1, 2)"),
	             "select (select a order by 1), $1 where b in ($2, $3)") == 0);
}

int main(void)
{
	struct arena *a = arena_new();
	test_hidden(a);
	test_kept(a);
	arena_free(a);
	return CHECK_DONE();
}
