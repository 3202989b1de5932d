/* HTTP/1 through a connection without a socket: header blocks, bodies, pipelining.
 *
 * The first byte of the input is the size of the pieces that the second run gets. Both runs (everything at once,
 * answered at once; in pieces, answered later) must see the same requests and give the same answers: where one request
 * ends must not depend on how the bytes arrive. A slow reading of an accepted block of our own says that it holds
 * nothing that another server could read in another way. */
#include "app.h"

#include "base/clock.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

/* A block that prescan() takes, line by line: CR LF only, names right before the colon, no folds, framing once. */
static void block_holds(struct str block, const struct prescan *scan)
{
	size_t hosts = 0, lengths = 0, encodings = 0, fields = 0;
	struct str line, name, value, rest = block;
	for (bool first = true; rest.n; first = false) {
		HOLDS(str_cut(rest, '\n', &line, &rest));
		HOLDS(line.n > 0 && line.p[line.n - 1] == '\r');
		line.n--;
		HOLDS(!memchr(line.p, '\r', line.n) && !memchr(line.p, '\0', line.n));
		HOLDS((line.n == 0) == (rest.n == 0));
		if (first || line.n == 0)
			continue;
		HOLDS(str_cut(line, ':', &name, &value));
		HOLDS(name.n && !memchr(name.p, ' ', name.n) && !memchr(name.p, '\t', name.n));
		hosts += str_ieq(name, STR("host"));
		lengths += str_ieq(name, STR("content-length"));
		encodings += str_ieq(name, STR("transfer-encoding"));
		fields++;
	}
	HOLDS(hosts <= 1 && (hosts == 1 || scan->version == 10) && scan->has_host == (hosts == 1));
	HOLDS(lengths + encodings <= 1 && scan->has_length == (lengths == 1) && scan->chunked == (encodings == 1));
	HOLDS(fields == scan->header_count && fields <= 100);
	HOLDS(prescan_method_known(scan->method) && scan->target.n && scan->target.n <= TARGET_MAX);
	HOLDS(scan->version == 10 || scan->version == 11);
}

static void prescan_holds(struct str in)
{
	struct prescan scan;
	ssize_t end = prescan_end(in.p, in.n, 0);
	HOLDS(end <= (ssize_t)in.n);
	/* Searched in two steps it ends at the same place. */
	for (size_t half = in.n / 3; half < in.n && half <= in.n / 3 + 2; half++) {
		ssize_t early = prescan_end(in.p, half, 0);
		HOLDS(early == 0 ? prescan_end(in.p, in.n, half) == end : early == end);
	}
	if (end <= 0)
		return;
	char *exact = fuzz_copy((struct str){in.p, (size_t)end});
	struct str block = {exact, (size_t)end};
	prescan(block, 100, &scan);
	if (scan.status == 0)
		block_holds(block, &scan);
	else
		HOLDS(scan.status >= 400 && scan.code && scan.detail);
	free(exact);
}

/* Takes the output off; `at_most` bytes at a time. */
static bool drain(struct conn *c, struct buf *out, size_t at_most)
{
	struct str ready = conn_output(c);
	if (ready.n == 0)
		return false;
	HOLDS(ready.n <= CONN_OUT_MAX + 65536);
	size_t n = ready.n < at_most ? ready.n : at_most;
	buf_add(out, ready.p, n);
	conn_sent(c, n);
	return true;
}

static void settle(struct conn *c, struct app *app, struct buf *out, size_t at_most)
{
	while (app_go_on(app) || drain(c, out, at_most))
		if (conn_is_broken(c))
			return;
}

/* True when the connection was cut. */
static bool run(struct str in, size_t piece, struct app *app, struct buf *out)
{
	struct http_app table = app_table(app);
	struct http_options options = {.header_max = 16384};
	struct ip peer = {{0}};
	struct conn_env *env = conn_env_new(&table, &options, 0);
	struct conn *c = conn_new(env, CONN_HTTP1, &peer, env->now_us);
	for (unsigned turn = 0; in.n && !conn_is_closing(c) && !conn_is_broken(c); turn++) {
		size_t n = piece && piece < in.n ? piece : in.n;
		char *exact = fuzz_copy((struct str){in.p, n});
		conn_input(c, (struct str){exact, n});
		free(exact);
		in = (struct str){in.p + n, in.n - n};
		if (piece && turn % 4 && conn_wants_input(c))
			continue; /* let some pile up */
		settle(c, app, out, piece ? 50000 : SIZE_MAX);
		HOLDS(conn_wants_input(c) || conn_is_closing(c) || conn_is_broken(c));
	}
	conn_input_end(c);
	settle(c, app, out, SIZE_MAX);
	HOLDS(conn_is_closing(c) || conn_is_broken(c));
	HOLDS(conn_is_broken(c) || conn_output(c).n == 0);
	bool broken = conn_is_broken(c);
	conn_free(c);
	app_go_on(app);
	HOLDS(env->live == 0 && app->handled <= app->done);
	conn_env_free(env);
	return broken;
}

/* Once more, with a clock that jumps, a server that drains or a client that is gone in the middle: nothing is said of
 * the answers, but nothing leaks, hangs or is answered twice. */
static void disturb(struct str in, size_t piece, struct app *app)
{
	struct http_app table = app_table(app);
	struct http_options options = {.header_max = 16384};
	struct ip peer = {{0}};
	struct conn_env *env = conn_env_new(&table, &options, 0);
	struct conn *c = conn_new(env, CONN_HTTP1, &peer, env->now_us);
	struct buf out = {0};
	if (piece == 64)
		conn_refuse_plain(c);
	for (unsigned turn = 1; in.n && !conn_is_closing(c) && !conn_is_broken(c); turn++) {
		size_t n = piece < in.n ? piece : in.n;
		conn_input(c, (struct str){in.p, n});
		unsigned what = (unsigned char)in.p[n - 1] % 8;
		in = (struct str){in.p + n, in.n - n};
		if (what == 0)
			conn_tick(c, env->now_us + 20 * 1000000);
		else if (what == 1)
			drain(c, &out, 1000);
		else if (what == 2)
			app_go_on(app);
		else if (what == 3 && turn % 4 == 0)
			conn_drain(c);
		else if (what == 4 && turn % 16 == 0)
			break;
	}
	conn_free(c);
	app_go_on(app);
	HOLDS(env->live == 0 && app->handled <= app->done);
	conn_env_free(env);
	buf_free(&out);
}

static struct str take_line(struct str *s)
{
	struct str line;
	HOLDS(str_cut(*s, '\n', &line, s) && line.n > 0 && line.p[line.n - 1] == '\r');
	line.n--;
	HOLDS(!memchr(line.p, '\r', line.n));
	return line;
}

static void take(struct str *s, size_t n)
{
	HOLDS(s->n >= n);
	*s = (struct str){s->p + n, s->n - n};
}

static size_t take_chunks(struct str *s)
{
	size_t total = 0;
	for (;;) {
		char z[16] = {0}, *end;
		struct str line = take_line(s);
		HOLDS(line.n > 0 && line.n < sizeof z);
		memcpy(z, line.p, line.n);
		size_t n = strtoul(z, &end, 16);
		HOLDS(*end == '\0');
		take(s, n);
		HOLDS(take_line(s).n == 0);
		if (n == 0)
			return total;
		total += n;
	}
}

/* Reads one answer and writes its status, its framing and the size of its body. False for "100 Continue". */
static bool take_answer(struct str *s, char shape, struct buf *ret)
{
	struct str line = take_line(s), name, value;
	uint64_t status, length = 0;
	bool has_length = false, chunked = false, closes = false;
	HOLDS(line.n > 13 && str_starts(line, STR("HTTP/1.1 ")));
	HOLDS(str_to_u64((struct str){line.p + 9, 3}, 599, &status));
	while ((line = take_line(s)).n) {
		HOLDS(prescan_field_ok(line) && str_cut(line, ':', &name, &value));
		value = str_trim(value);
		if (str_ieq(name, STR("content-length"))) {
			HOLDS(!has_length && str_to_u64(value, APP_BIG, &length));
			has_length = true;
		}
		chunked |= str_ieq(name, STR("transfer-encoding"));
		closes |= str_ieq(name, STR("connection")) && str_is(value, "close");
	}
	if (status == 100)
		return false;
	HOLDS(!(has_length && chunked));
	if (shape == 'H' || status == 204)
		length = 0;
	else if (chunked)
		length = take_chunks(s);
	else if (has_length)
		take(s, length);
	else {
		HOLDS(closes); /* framed by the end of the connection */
		length = s->n;
		take(s, s->n);
	}
	HOLDS(!closes || s->n == 0);
	buf_printf(ret, "%u %d%d%d %zu\n", (unsigned)status, has_length, chunked, closes, (size_t)length);
	return true;
}

static void answers_read(const struct buf *out, const struct app *app, struct buf *ret)
{
	struct str rest = buf_view(out);
	size_t count = 0, continues = 0;
	while (rest.n) {
		if (take_answer(&rest, count < app->shapes.n ? app->shapes.p[count] : '.', ret))
			count++;
		else
			continues++;
	}
	HOLDS(count == app->done);
	HOLDS(app->bytes_sent + 25 * continues == out->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	struct app whole = {0}, pieces = {.later = true}, disturbed = {.later = true};
	struct buf out_whole = {0}, out_pieces = {0}, one = {0}, two = {0};
	size_t piece = fuzz_byte(&in) % 64 + 1;
	if (in.n == 0)
		return 0;
	prescan_holds(in);
	bool cut = run(in, 0, &whole, &out_whole);
	cut = run(in, piece, &pieces, &out_pieces) || cut;
	if (!cut) {
		answers_read(&out_whole, &whole, &one);
		answers_read(&out_pieces, &pieces, &two);
		HOLDS(str_eq(buf_view(&one), buf_view(&two)));
	}
	HOLDS(str_eq(buf_view(&whole.log), buf_view(&pieces.log)));
	disturb(in, piece, &disturbed);
	buf_free(&out_whole);
	buf_free(&out_pieces);
	buf_free(&one);
	buf_free(&two);
	app_free(&whole);
	app_free(&pieces);
	app_free(&disturbed);
	return 0;
}
