/* HTTP/2 frames through our glue, on a connection without a socket.
 *
 * The input is a script, one line a step, so that a corpus can be read and the fuzzer gets past lengths and HPACK. The
 * first letter says what, then one hexadecimal digit of flags and one of stream / 2 for frames, then the payload, in
 * which %xx stands for a byte:
 *
 *   H51 :method=GET|:path=/|...   HEADERS, the fields as HPACK literals       h51 ...  HEADERS, the payload as it stands
 *   D11 text   DATA               C51 ...  CONTINUATION                       S00 ...  SETTINGS
 *   R01 n      RST_STREAM         W01 n    WINDOW_UPDATE (decimal numbers)    P00 8 bytes  PING
 *   G00 ...    GOAWAY             p01 ...  PRIORITY   U01 ...  PUSH_PROMISE   ?01 ...  an unknown frame
 *   !bytes     not framed         *nn step repeats the step 16 * n + n times
 *   a          answers wait from now on, and what waits is answered           o n      n bytes of output are taken
 *   t n        n seconds pass     e  the client's side ends                   d        drain
 *
 * A line that starts with '-' first makes the preface be left out. */
#include "app.h"

#include "base/clock.h"

/* With repeats: enough for more than the 1000 control frames that the glue takes. */
#define STEPS_MAX 1300u

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct peer {
	struct app app;
	struct conn_env *env;
	struct conn *c;
	struct buf out; /* output not yet taken apart */
	bool goaway;
	unsigned answers;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

/* Frames that we send: sizes and types as the protocol has them, nothing on streams of our own. */
static void frames_hold(struct peer *p)
{
	while (p->out.n >= 9) {
		const unsigned char *f = (const unsigned char *)p->out.p;
		size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
		unsigned type = f[3], stream = (f[5] & 0x7fu) << 24 | (unsigned)f[6] << 16 | (unsigned)f[7] << 8 | f[8];
		HOLDS(n <= 16384);
		if (p->out.n < 9 + n)
			return;
		HOLDS(type <= 9 && type != 2 && type != 5);
		HOLDS((type == 4 || type == 6 || type == 7) ? stream == 0 : type == 8 || stream % 2 == 1);
		p->goaway |= type == 7;
		p->answers += type == 1;
		buf_consume(&p->out, 9 + n);
	}
}

static bool output_take(struct peer *p, size_t at_most)
{
	struct str ready = conn_output(p->c);
	size_t n = ready.n < at_most ? ready.n : at_most;
	HOLDS(ready.n <= CONN_OUT_MAX + 65536);
	if (n == 0)
		return false;
	buf_add(&p->out, ready.p, n);
	conn_sent(p->c, n);
	frames_hold(p);
	return true;
}

static void send_bytes(struct peer *p, struct str bytes)
{
	char *exact = fuzz_copy(bytes);
	conn_input(p->c, (struct str){exact, bytes.n});
	free(exact);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

static void unescape(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '%' && s.n - i > 2 && hex_digit(s.p[i + 1]) >= 0 && hex_digit(s.p[i + 2]) >= 0) {
			buf_c(b, (char)(hex_digit(s.p[i + 1]) << 4 | hex_digit(s.p[i + 2])));
			i += 2;
		} else {
			buf_c(b, s.p[i]);
		}
	}
}

static void hpack_string(struct buf *b, struct str s)
{
	struct buf plain = {0};
	unescape(&plain, s);
	if (plain.n < 127) {
		buf_c(b, (char)plain.n);
	} else {
		size_t rest = plain.n - 127;
		buf_c(b, 127);
		for (; rest >= 128; rest >>= 7)
			buf_c(b, (char)(rest | 128));
		buf_c(b, (char)rest);
	}
	buf_str(b, buf_view(&plain));
	buf_free(&plain);
}

/* Literals without a name from the table; '+' before the name has it added to the dynamic table. */
static void hpack(struct buf *b, struct str fields)
{
	struct str field, name, value;
	while (fields.n) {
		str_cut(fields, '|', &field, &fields);
		bool indexed = field.n && field.p[0] == '+';
		field = (struct str){field.p + indexed, field.n - indexed};
		str_cut(field, '=', &name, &value);
		buf_c(b, indexed ? 0x40 : 0);
		hpack_string(b, name);
		hpack_string(b, value);
	}
}

static uint32_t number_of(struct str s)
{
	uint32_t n = 0;
	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n = n * 10 + (uint32_t)(s.p[i] - '0');
	return n;
}

static void payload_make(struct buf *b, char letter, struct str text)
{
	uint32_t n = number_of(text);
	if (letter == 'H')
		hpack(b, text);
	else if (letter == 'R' || letter == 'W')
		buf_add(b, (char[]){(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n}, 4);
	else
		unescape(b, text);
}

static int frame_type(char letter)
{
	static const char types[] = "DHpRSUPGWC"; /* in the order of their numbers */
	const char *at = letter ? strchr(types, letter) : NULL;
	return at ? (int)(at - types) : letter == 'h' ? 1 : letter == '?' ? 0x42 : -1;
}

static void frame_send(struct peer *p, int type, struct str line)
{
	struct buf payload = {0}, frame = {0};
	int flags = line.n > 1 ? hex_digit(line.p[1]) : 0, stream = line.n > 2 ? hex_digit(line.p[2]) : 0;
	size_t skip = line.n > 3 && line.p[3] == ' ' ? 4 : line.n < 3 ? line.n : 3;
	payload_make(&payload, line.p[0], (struct str){line.p + skip, line.n - skip});
	uint32_t id = stream > 0 ? (uint32_t)stream * 2 - 1 : 0;
	size_t n = payload.n;
	buf_add(&frame,
	        (char[]){(char)(n >> 16), (char)(n >> 8), (char)n, (char)type, (char)(flags < 0 ? 0xff : flags)}, 5);
	buf_add(&frame, (char[]){0, 0, 0, (char)id}, 4);
	buf_str(&frame, buf_view(&payload));
	send_bytes(p, buf_view(&frame));
	buf_free(&payload);
	buf_free(&frame);
}

static void step(struct peer *p, struct str line)
{
	struct str rest = {line.p + 1, line.n - 1};
	int type = frame_type(line.p[0]);
	if (type >= 0) {
		frame_send(p, type, line);
		return;
	}
	switch (line.p[0]) {
	case '!': {
		struct buf b = {0};
		unescape(&b, rest);
		send_bytes(p, buf_view(&b));
		buf_free(&b);
		return;
	}
	case 'a':
		p->app.later = true;
		app_go_on(&p->app);
		return;
	case 'o': output_take(p, 1 + number_of(str_trim(rest)) % 100000); return;
	case 't': conn_tick(p->c, p->env->now_us + (int64_t)(number_of(str_trim(rest)) % 100) * 1000000); return;
	case 'e': conn_input_end(p->c); return;
	case 'd': conn_drain(p->c); return;
	default: return;
	}
}

static void script_run(struct peer *p, struct str script)
{
	struct str line;
	for (unsigned steps = 0; script.n && steps < STEPS_MAX; steps++) {
		str_cut(script, '\n', &line, &script);
		unsigned times = 1;
		if (line.n > 2 && line.p[0] == '*') {
			times = 17u * (unsigned)(hex_digit(line.p[1]) & 15) + 1;
			line = (struct str){line.p + 2, line.n - 2};
		}
		for (; line.n && times > 0 && steps < STEPS_MAX; times--, steps++) {
			if (conn_is_broken(p->c) || conn_is_closing(p->c))
				return;
			step(p, line);
			/* A transport that is told to wait waits. */
			while (!conn_wants_input(p->c) && (app_go_on(&p->app) || output_take(p, SIZE_MAX)))
				;
		}
		HOLDS(p->app.waiting_count <= 200);
	}
}

static void finish(struct peer *p)
{
	conn_input_end(p->c);
	for (unsigned turns = 0; !conn_is_broken(p->c); turns++) {
		bool any = app_go_on(&p->app);
		if (!output_take(p, SIZE_MAX) && !any)
			break;
		HOLDS(turns < 100000);
	}
	HOLDS(conn_is_broken(p->c) || p->out.n == 0);
	conn_free(p->c);
	app_go_on(&p->app);
	HOLDS(p->env->live == 0 && p->app.handled <= p->app.done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	struct peer p = {.goaway = false};
	struct http_app table = app_table(&p.app);
	struct http_options options = {.header_max = 8192, .streams_max = 20, .resets_max = 40};
	struct ip from = {{0}};
	p.env = conn_env_new(&table, &options, 0);
	p.c = conn_new(p.env, CONN_HTTP2, &from, p.env->now_us);
	if (in.n && in.p[0] == '-')
		fuzz_byte(&in);
	else
		send_bytes(&p, STR(preface));
	script_run(&p, in);
	finish(&p);
	conn_env_free(p.env);
	buf_free(&p.out);
	app_free(&p.app);
	return 0;
}
