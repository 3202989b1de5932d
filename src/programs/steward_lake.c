/* steward-lake: makes a Parquet file of rows, or rows of such a file, in a process of its own. The rows are a tenant's,
 * and the library that writes and reads the file is large and foreign: the process has no keys, no network, no files
 * and no environment, and bounds on memory and time. docs/archive-format.md tells the file.
 *
 * Standard input: a line of JSON, {"columns": [{"name", "type"}], "order": [names]}, and behind it what a PostgreSQL
 * server sends for COPY ... TO STDOUT (FORMAT binary). Descriptor 3, a pipe: the file, sorted by the columns of
 * `order`. Standard output: {"rows": how many} when the whole of the file was written, else {"error": why}. Whoever
 * reads the file has it only with that answer.
 *
 * All rows are read before the first byte of the file is written, so that who asks may first write and then read.
 *
 * The other way round, where the line of JSON has "read": true: descriptor 3 is the file, the rows go back over the
 * standard input, which is a socket, in the text form of COPY ... FROM STDIN; and "rows" is how many there were.
 *
 * libduckdb opens files by name. Its calls of open() and of what it asks about files come here, where one name is
 * known: that of the descriptor. No filter of system calls has to let it open anything. */
#include "confine/confine.h"
#include "confine/pipes.h"
#include "programs/duckdb/duckdb.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THE_FILE 3
#define OUT_NAME "/lake/out.parquet"
#define IN_NAME "/lake/in.parquet"
#define OUTPUT_STEP (256u << 10)
#define HEADER_MAX (1u << 20)
#define COLUMNS_MAX 1600 /* that a table of PostgreSQL has at most */
#define VALUE_MAX (256u << 20)
#define INPUT_STEP (256u << 10)
#define MEMORY_LIMIT "1000MB"
#define ADDRESSES_MAX (UINT64_C(4) << 30)
#define SECONDS_MAX 600
#define DIGITS_MAX 38 /* of a DECIMAL */

#define EPOCH_DAYS 10957 /* from 1970 to 2000, where PostgreSQL begins to count */
#define DAY_MICROS INT64_C(86400000000)

enum kind {
	KIND_BOOL,
	KIND_INT16,
	KIND_INT32,
	KIND_INT64,
	KIND_FLOAT,
	KIND_DOUBLE,
	KIND_DATE,
	KIND_TIME,
	KIND_TIMESTAMP,
	KIND_UUID,
	KIND_BYTES,
	KIND_TEXT
};

/* `bytes`: that a value has, or 0. */
static const struct type {
	const char *name, *sql;
	enum kind kind;
	size_t bytes;
} types[] = {
        {"boolean", "BOOLEAN", KIND_BOOL, 1},
        {"smallint", "SMALLINT", KIND_INT16, 2},
        {"integer", "INTEGER", KIND_INT32, 4},
        {"bigint", "BIGINT", KIND_INT64, 8},
        {"real", "FLOAT", KIND_FLOAT, 4},
        {"double precision", "DOUBLE", KIND_DOUBLE, 8},
        {"date", "DATE", KIND_DATE, 4},
        {"time", "TIME", KIND_TIME, 8},
        {"timestamp", "TIMESTAMP", KIND_TIMESTAMP, 8},
        {"timestamptz", "TIMESTAMP WITH TIME ZONE", KIND_TIMESTAMP, 8},
        {"uuid", "UUID", KIND_UUID, 16},
        {"bytea", "BLOB", KIND_BYTES, 0},
        {"text", "VARCHAR", KIND_TEXT, 0},
};

/* The text of a number, which the library makes a number of that many digits of. */
static const struct type decimal = {"decimal", NULL, KIND_TEXT, 0};

struct work {
	struct duckdb_connection *conn;
	struct duckdb_appender *rows;
	const struct type *columns[COLUMNS_MAX];
	size_t column_count;
	uint64_t row_count;
	char error[500];
};

static bool is_confined, is_reading;

/* What was read of the standard input and not used yet. */
static struct {
	char *bytes;
	size_t at, n, room;
} input;

/* --- the library's files: in the place of the C library's, for libduckdb. While it begins it looks at the machine. */

static bool is_the_file(const char *path)
{
	bool found = is_reading && strcmp(path, IN_NAME) == 0;
	if (!found)
		errno = ENOENT;
	return found;
}

int lake_open(const char *path, int flags, ...) __asm__("open");
__attribute__((used, visibility("default"))) int lake_open(const char *path, int flags, ...)
{
	static bool taken;
	if (!is_confined)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags & ~O_CREAT, 0);
	if (is_the_file(path))
		return THE_FILE;
	if (taken || strcmp(path, OUT_NAME) != 0) {
		errno = ENOENT;
		return -1;
	}
	taken = true;
	return THE_FILE;
}

/* What is read is opened more than once. */
int lake_close(int fd) __asm__("close");
__attribute__((used, visibility("default"))) int lake_close(int fd)
{
	return is_confined && is_reading && fd == THE_FILE ? 0 : (int)syscall(SYS_close, fd);
}

ssize_t lake_pread(int fd, void *to, size_t n, off_t at) __asm__("pread");
__attribute__((used, visibility("default"))) ssize_t lake_pread(int fd, void *to, size_t n, off_t at)
{
	if (!is_confined)
		return syscall(SYS_pread64, fd, to, n, at);
	return lseek(fd, at, SEEK_SET) < 0 ? -1 : read(fd, to, n);
}

int lake_access(const char *path, int mode) __asm__("access");
__attribute__((used, visibility("default"))) int lake_access(const char *path, int mode)
{
	if (!is_confined)
		return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
	return is_the_file(path) ? 0 : -1;
}

int lake_stat(const char *path, struct stat *ret_stat) __asm__("stat");
__attribute__((used, visibility("default"))) int lake_stat(const char *path, struct stat *ret_stat)
{
	if (!is_confined)
		return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_stat, 0);
	return is_the_file(path) ? (int)syscall(SYS_fstat, THE_FILE, ret_stat) : -1;
}

/* As libraries call it that were built for older systems. */
int lake_xstat(int version, const char *path, struct stat *ret_stat) __asm__("__xstat");
__attribute__((used, visibility("default"))) int lake_xstat(int version, const char *path, struct stat *ret_stat)
{
	(void)version;
	return lake_stat(path, ret_stat);
}

/* --- failures: the first one counts */

static bool fail(struct work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct work *w, const char *format, ...)
{
	va_list args;
	if (*w->error)
		return false;
	va_start(args, format);
	vsnprintf(w->error, sizeof w->error, format, args);
	va_end(args);
	return false;
}

static bool sql_run(struct work *w, const char *sql)
{
	struct duckdb_result result;
	bool done = duckdb_query(w->conn, sql, &result) == DUCKDB_SUCCESS;
	if (!done) {
		const char *why = duckdb_result_error(&result);
		fail(w, "%s", why ? why : "the library says no reason");
	}
	duckdb_destroy_result(&result);
	return done;
}

static bool rows_failed(struct work *w)
{
	const char *why = duckdb_appender_error(w->rows);
	return fail(w, "%s", why ? why : "a row was refused");
}

/* --- the standard input */

static void input_make_room(size_t n)
{
	if (input.n > input.at)
		memmove(input.bytes, input.bytes + input.at, input.n - input.at);
	input.n -= input.at;
	input.at = 0;
	if (input.room >= n)
		return;
	input.bytes = realloc(input.bytes, n);
	if (!input.bytes)
		_exit(1);
	input.room = n;
}

/* The next so many bytes, which are valid until it is called again; NULL: there are not so many. */
static const unsigned char *input_take(size_t n)
{
	if (input.n - input.at < n)
		input_make_room(n > INPUT_STEP ? n : INPUT_STEP);
	while (input.n - input.at < n) {
		ssize_t got = read(STDIN_FILENO, input.bytes + input.n, input.room - input.n);
		if (got <= 0)
			return NULL;
		input.n += (size_t)got;
	}
	const char *p = input.bytes + input.at;
	input.at += n;
	return (const unsigned char *)p;
}

static uint64_t number_of(const unsigned char *p, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	return value;
}

/* Byte by byte: a line has no length before it. */
static json_t *header_read(void)
{
	char *line = malloc(HEADER_MAX);
	size_t n = 0;
	const unsigned char *p = NULL;
	while (line && n < HEADER_MAX && (p = input_take(1)) && *p != '\n')
		line[n++] = (char)*p;
	json_t *header = p && *p == '\n' ? json_loadb(line, n, 0, NULL) : NULL;
	free(line);
	return header;
}

/* --- the table */

/* Texts that grow, of SQL. */
struct sql {
	char *p;
	size_t n;
	FILE *file;
};

static void sql_begin(struct sql *s)
{
	s->file = open_memstream(&s->p, &s->n);
	if (!s->file)
		_exit(1);
}

static const char *sql_end(struct sql *s)
{
	if (fclose(s->file) != 0)
		_exit(1);
	return s->p;
}

static void name_add(struct sql *s, const char *name)
{
	fputc('"', s->file);
	for (const char *p = name; *p; p++)
		fprintf(s->file, *p == '"' ? "\"\"" : "%c", *p);
	fputc('"', s->file);
}

/* "decimal(DIGITS,PLACES)" */
static bool decimal_read(const char *name, unsigned *ret_digits, unsigned *ret_places)
{
	char again[32];
	if (sscanf(name, "decimal(%2u,%2u)", ret_digits, ret_places) != 2)
		return false;
	snprintf(again, sizeof again, "decimal(%u,%u)", *ret_digits, *ret_places);
	return strcmp(name, again) == 0 && *ret_digits >= 1 && *ret_digits <= DIGITS_MAX && *ret_places <= *ret_digits;
}

static const struct type *type_add(struct sql *s, const char *name)
{
	unsigned digits, places;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].name, name) == 0) {
			fprintf(s->file, " %s", types[i].sql);
			return &types[i];
		}
	if (!decimal_read(name, &digits, &places))
		return NULL;
	fprintf(s->file, " DECIMAL(%u,%u)", digits, places);
	return &decimal;
}

static const char *text(const json_t *in, const char *name)
{
	const char *value = json_string_value(json_object_get(in, name));
	return value ? value : "";
}

static bool columns_add(struct work *w, struct sql *s, const json_t *columns)
{
	w->column_count = json_array_size(columns);
	if (!w->column_count || w->column_count > COLUMNS_MAX)
		return fail(w, "a table has 1 to %d columns", COLUMNS_MAX);
	for (size_t i = 0; i < w->column_count; i++) {
		const json_t *column = json_array_get(columns, i);
		fputs(i ? ", " : "", s->file);
		name_add(s, text(column, "name"));
		w->columns[i] = type_add(s, text(column, "type"));
		if (!w->columns[i])
			return fail(w, "no column has the type \"%s\"", text(column, "type"));
	}
	return true;
}

static bool table_make(struct work *w, const json_t *header)
{
	struct sql s;
	sql_begin(&s);
	fputs("CREATE TABLE rows (", s.file);
	bool valid = columns_add(w, &s, json_object_get(header, "columns"));
	fputs(")", s.file);
	sql_end(&s);
	valid = valid && sql_run(w, s.p);
	free(s.p);
	if (valid && duckdb_appender_create(w->conn, NULL, "rows", &w->rows) != DUCKDB_SUCCESS)
		return rows_failed(w);
	return valid;
}

/* --- rows */

/* What has no end is the largest and the least number in PostgreSQL; in the library, the largest, and that negated. */
static bool timestamp_of(int64_t micros, struct duckdb_timestamp *ret_value)
{
	if (micros == INT64_MAX || micros == INT64_MIN)
		ret_value->micros = micros == INT64_MAX ? INT64_MAX : -INT64_MAX;
	else if (__builtin_add_overflow(micros, EPOCH_DAYS * DAY_MICROS, &ret_value->micros))
		return false;
	return true;
}

static struct duckdb_date date_of(int32_t days)
{
	if (days == INT32_MAX || days == INT32_MIN)
		return (struct duckdb_date){days == INT32_MAX ? INT32_MAX : -INT32_MAX};
	return (struct duckdb_date){days + EPOCH_DAYS};
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static double double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static enum duckdb_state uuid_append(struct duckdb_appender *rows, const unsigned char *p)
{
	char hex[37];
	size_t n = 0;
	for (size_t i = 0; i < 16; i++)
		n += (size_t)snprintf(hex + n, sizeof hex - n, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
		                      p[i]);
	return duckdb_append_varchar_length(rows, hex, n);
}

static enum duckdb_state value_append(struct duckdb_appender *rows, enum kind kind, const unsigned char *p, size_t n)
{
	struct duckdb_timestamp timestamp;
	uint64_t bits = n <= sizeof bits ? number_of(p, n) : 0;
	switch (kind) {
	case KIND_BOOL: return duckdb_append_bool(rows, bits != 0);
	case KIND_INT16: return duckdb_append_int16(rows, (int16_t)bits);
	case KIND_INT32: return duckdb_append_int32(rows, (int32_t)bits);
	case KIND_INT64: return duckdb_append_int64(rows, (int64_t)bits);
	case KIND_FLOAT: return duckdb_append_float(rows, float_of((uint32_t)bits));
	case KIND_DOUBLE: return duckdb_append_double(rows, double_of(bits));
	case KIND_DATE: return duckdb_append_date(rows, date_of((int32_t)bits));
	case KIND_TIME: return duckdb_append_time(rows, (struct duckdb_time){(int64_t)bits});
	case KIND_UUID: return uuid_append(rows, p);
	case KIND_BYTES: return duckdb_append_blob(rows, p, n);
	case KIND_TEXT: return duckdb_append_varchar_length(rows, (const char *)p, n);
	case KIND_TIMESTAMP:
		if (timestamp_of((int64_t)bits, &timestamp))
			return duckdb_append_timestamp(rows, timestamp);
		break;
	}
	return DUCKDB_ERROR;
}

static bool value_take(struct work *w, const struct type *column)
{
	const unsigned char *p = input_take(4);
	if (!p)
		return fail(w, "the rows end within one");
	uint32_t n = (uint32_t)number_of(p, 4);
	if (n == UINT32_MAX)
		return duckdb_append_null(w->rows) == DUCKDB_SUCCESS || rows_failed(w);
	if (n > VALUE_MAX || (column->bytes && n != column->bytes))
		return fail(w, "row %llu: a value has %u bytes", (unsigned long long)w->row_count + 1, n);
	p = input_take(n);
	if (!p)
		return fail(w, "the rows end within one");
	return value_append(w->rows, column->kind, p, n) == DUCKDB_SUCCESS || rows_failed(w);
}

static bool row_take(struct work *w)
{
	for (size_t i = 0; i < w->column_count; i++)
		if (!value_take(w, w->columns[i]))
			return false;
	if (duckdb_appender_end_row(w->rows) != DUCKDB_SUCCESS)
		return rows_failed(w);
	w->row_count++;
	return true;
}

/* A copy begins with these bytes, four of flags, and what may follow the flags, with its length before it. */
static bool head_take(struct work *w)
{
	static const unsigned char mark[] = "PGCOPY\n\377\r\n";
	const unsigned char *p = input_take(sizeof mark);
	if (!p || memcmp(p, mark, sizeof mark) != 0)
		return fail(w, "what is to be written is no copy of PostgreSQL's");
	p = input_take(8);
	if (!p || number_of(p, 8) != 0)
		return fail(w, "the copy has a form that is not known");
	return true;
}

/* Each row has the number of its values before it; where a row would be, -1 is the end. */
static bool rows_take(struct work *w)
{
	if (!head_take(w))
		return false;
	for (;;) {
		const unsigned char *p = input_take(2);
		if (!p)
			return fail(w, "the rows have no end");
		uint16_t n = (uint16_t)number_of(p, 2);
		if (n == UINT16_MAX)
			break;
		if (n != w->column_count)
			return fail(w, "a row has %u values, of %zu columns", n, w->column_count);
		if (!row_take(w))
			return false;
	}
	if (input_take(1))
		return fail(w, "something follows the end of the rows");
	return duckdb_appender_close(w->rows) == DUCKDB_SUCCESS || rows_failed(w);
}

static bool file_write(struct work *w, const json_t *header)
{
	const json_t *order = json_object_get(header, "order");
	struct sql s;
	sql_begin(&s);
	fputs("COPY (SELECT * FROM rows", s.file);
	for (size_t i = 0; i < json_array_size(order); i++) {
		const char *name = json_string_value(json_array_get(order, i));
		fputs(i ? ", " : " ORDER BY ", s.file);
		name_add(&s, name ? name : "");
	}
	fputs(") TO '" OUT_NAME "' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)", s.file);
	sql_end(&s);
	bool done = sql_run(w, s.p);
	free(s.p);
	return done;
}

/* --- rows of a file */

static struct {
	char bytes[OUTPUT_STEP];
	size_t n;
} output;

static bool output_flush(struct work *w)
{
	for (size_t done = 0; done < output.n;) {
		ssize_t n = write(STDIN_FILENO, output.bytes + done, output.n - done);
		if (n < 0 && errno != EINTR)
			return fail(w, "nobody takes the rows");
		done += n > 0 ? (size_t)n : 0;
	}
	output.n = 0;
	return true;
}

static bool output_add(struct work *w, char c)
{
	output.bytes[output.n++] = c;
	return output.n < sizeof output.bytes || output_flush(w);
}

static bool text_add(struct work *w, const char *p, size_t n)
{
	static const char escaped[] = "\\\n\r\t", letters[] = "\\nrt";
	for (size_t i = 0; i < n; i++) {
		const char *found = p[i] ? strchr(escaped, p[i]) : NULL;
		if (found && !output_add(w, '\\'))
			return false;
		char c = p[i];
		if (found)
			c = letters[found - escaped];
		if (!output_add(w, c))
			return false;
	}
	return true;
}

static bool value_give(struct work *w, struct duckdb_vector *vector, uint64_t row)
{
	const uint64_t *valid = duckdb_vector_get_validity(vector);
	const union duckdb_text *t = (const union duckdb_text *)duckdb_vector_get_data(vector) + row;
	bool is_near = t->near.length <= sizeof t->near.bytes;
	if (valid && !(valid[row / 64] >> row % 64 & 1))
		return output_add(w, '\\') && output_add(w, 'N');
	return text_add(w, is_near ? t->near.bytes : t->far.p, t->near.length);
}

static bool chunk_give(struct work *w, struct duckdb_chunk *chunk)
{
	uint64_t count = duckdb_data_chunk_get_size(chunk);
	for (uint64_t row = 0; row < count; row++, w->row_count++)
		for (size_t i = 0; i < w->column_count; i++)
			if ((i && !output_add(w, '\t')) ||
			    !value_give(w, duckdb_data_chunk_get_vector(chunk, i), row) ||
			    (i + 1 == w->column_count && !output_add(w, '\n')))
				return false;
	return true;
}

/* As PostgreSQL reads it. */
static void value_add(struct sql *s, const char *name, const char *type)
{
	bool is_bytes = strcmp(type, "bytea") == 0;
	bool is_time = strcmp(type, "date") == 0 || strncmp(type, "timestamp", 9) == 0;
	fputs(is_bytes ? "'\\x' || hex(" : is_time ? "replace(CAST(" : "CAST(", s->file);
	name_add(s, name);
	fputs(is_bytes ? ")" : is_time ? " AS VARCHAR), ' (BC)', ' BC')" : " AS VARCHAR)", s->file);
}

static bool select_make(struct work *w, struct sql *s, const json_t *columns)
{
	w->column_count = json_array_size(columns);
	if (!w->column_count || w->column_count > COLUMNS_MAX)
		return fail(w, "a table has 1 to %d columns", COLUMNS_MAX);
	fputs("SELECT ", s->file);
	for (size_t i = 0; i < w->column_count; i++) {
		fputs(i ? ", " : "", s->file);
		value_add(s, text(json_array_get(columns, i), "name"), text(json_array_get(columns, i), "type"));
	}
	fputs(" FROM read_parquet('" IN_NAME "')", s->file);
	return true;
}

static bool rows_give(struct work *w, const char *sql)
{
	struct duckdb_result result;
	bool done = duckdb_query(w->conn, sql, &result) == DUCKDB_SUCCESS;
	const char *why = done ? NULL : duckdb_result_error(&result);
	if (!done)
		fail(w, "%s", why ? why : "the library says no reason");
	for (struct duckdb_chunk *chunk; done && (chunk = duckdb_fetch_chunk(result));
	     duckdb_destroy_data_chunk(&chunk))
		done = chunk_give(w, chunk);
	duckdb_destroy_result(&result);
	return done && output_flush(w);
}

static bool file_read(struct work *w, const json_t *header)
{
	struct sql s;
	is_reading = true;
	sql_begin(&s);
	bool valid = select_make(w, &s, json_object_get(header, "columns"));
	sql_end(&s);
	valid = valid && rows_give(w, s.p);
	free(s.p);
	return valid;
}

/* --- the process */

/* One thread, which the filter holds it to; what does not fit into memory fails. The parts of the library that are
 * fetched from elsewhere are not asked for. */
static bool library_open(struct work *w)
{
	static const char *const settings[][2] = {{"threads", "1"},
	                                          {"memory_limit", MEMORY_LIMIT},
	                                          {"temp_directory", ""},
	                                          {"autoinstall_known_extensions", "false"},
	                                          {"autoload_known_extensions", "false"}};
	struct duckdb_config *config;
	struct duckdb_database *database;
	char *why = NULL;
	if (duckdb_create_config(&config) != DUCKDB_SUCCESS)
		return fail(w, "the library has no settings");
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		if (duckdb_set_config(config, settings[i][0], settings[i][1]) != DUCKDB_SUCCESS)
			return fail(w, "the library has no setting %s", settings[i][0]);
	if (duckdb_open_ext(":memory:", &database, config, &why) != DUCKDB_SUCCESS ||
	    duckdb_connect(database, &w->conn) != DUCKDB_SUCCESS)
		return fail(w, "the library does not begin: %s", why ? why : "it says no reason");
	return sql_run(w, "SET TimeZone = 'UTC'");
}

static bool work_do(struct work *w)
{
	json_t *header = header_read();
	if (!header)
		return fail(w, "the first line is no JSON");
	if (json_is_true(json_object_get(header, "read")))
		return file_read(w, header);
	return table_make(w, header) && rows_take(w) && file_write(w, header);
}

int main(void)
{
	static struct work w;
	bool ready = library_open(&w);
	alarm(SECONDS_MAX);
	confine_to_connection(&(struct confine_bounds){.memory = ADDRESSES_MAX, .seconds = SECONDS_MAX}, THE_FILE);
	is_confined = true;
	bool done = ready && work_do(&w);
	json_t *answer = done ? json_pack("{s:I}", "rows", (json_int_t)w.row_count)
	                      : json_pack("{s:s}", "error", *w.error ? w.error : "it failed");
	if (!answer) /* words that are no UTF-8 */
		answer = json_pack("{s:s}", "error", "it failed");
	char *said = json_dumps(answer, JSON_COMPACT);
	_exit(said && pipe_write(said) == 0 ? 0 : 1);
}
