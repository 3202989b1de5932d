/* The part of DuckDB's C interface that steward-lake uses. The package that brings the library brings no header; these
 * names and types are the library's, and are not changed within a major version. */
#ifndef STEWARD_PROGRAMS_DUCKDB_DUCKDB_H
#define STEWARD_PROGRAMS_DUCKDB_DUCKDB_H

#include <stdbool.h>
#include <stdint.h>

struct duckdb_database;
struct duckdb_connection;
struct duckdb_config;
struct duckdb_appender;
struct duckdb_chunk;
struct duckdb_vector;

enum duckdb_state { DUCKDB_SUCCESS, DUCKDB_ERROR };

struct duckdb_result {
	uint64_t columns, rows, changed; /* not filled in any more */
	void *column_data;
	char *error;
	void *own;
};

struct duckdb_date {
	int32_t days; /* since 1970 */
};

struct duckdb_time {
	int64_t micros;
};

struct duckdb_timestamp {
	int64_t micros; /* since 1970 */
};

/* Of a vector of texts: those of up to 12 bytes lie in it. */
union duckdb_text {
	struct {
		uint32_t length;
		char bytes[12];
	} near;
	struct {
		uint32_t length;
		char prefix[4];
		const char *p;
	} far;
};

enum duckdb_state duckdb_create_config(struct duckdb_config **ret_config);
enum duckdb_state duckdb_set_config(struct duckdb_config *config, const char *name, const char *value);
enum duckdb_state duckdb_open_ext(const char *path, struct duckdb_database **ret_database, struct duckdb_config *config,
                                  char **ret_error);
enum duckdb_state duckdb_connect(struct duckdb_database *database, struct duckdb_connection **ret_connection);
/* The result is filled in also where it fails. */
enum duckdb_state duckdb_query(struct duckdb_connection *connection, const char *sql, struct duckdb_result *ret_result);
const char *duckdb_result_error(struct duckdb_result *result);
void duckdb_destroy_result(struct duckdb_result *result);

/* The next rows of a result; NULL: there are no more, or the query has failed. */
struct duckdb_chunk *duckdb_fetch_chunk(struct duckdb_result result);
uint64_t duckdb_data_chunk_get_size(struct duckdb_chunk *chunk);
struct duckdb_vector *duckdb_data_chunk_get_vector(struct duckdb_chunk *chunk, uint64_t column);
void duckdb_destroy_data_chunk(struct duckdb_chunk **chunk);
void *duckdb_vector_get_data(struct duckdb_vector *vector);
/* A bit for each value that is not NULL; NULL: all are. */
uint64_t *duckdb_vector_get_validity(struct duckdb_vector *vector);

enum duckdb_state duckdb_appender_create(struct duckdb_connection *connection, const char *schema, const char *table,
                                         struct duckdb_appender **ret_appender);
const char *duckdb_appender_error(struct duckdb_appender *appender);
enum duckdb_state duckdb_appender_end_row(struct duckdb_appender *appender);
enum duckdb_state duckdb_appender_close(struct duckdb_appender *appender);

enum duckdb_state duckdb_append_null(struct duckdb_appender *appender);
enum duckdb_state duckdb_append_bool(struct duckdb_appender *appender, bool value);
enum duckdb_state duckdb_append_int16(struct duckdb_appender *appender, int16_t value);
enum duckdb_state duckdb_append_int32(struct duckdb_appender *appender, int32_t value);
enum duckdb_state duckdb_append_int64(struct duckdb_appender *appender, int64_t value);
enum duckdb_state duckdb_append_float(struct duckdb_appender *appender, float value);
enum duckdb_state duckdb_append_double(struct duckdb_appender *appender, double value);
enum duckdb_state duckdb_append_date(struct duckdb_appender *appender, struct duckdb_date value);
enum duckdb_state duckdb_append_time(struct duckdb_appender *appender, struct duckdb_time value);
enum duckdb_state duckdb_append_timestamp(struct duckdb_appender *appender, struct duckdb_timestamp value);
enum duckdb_state duckdb_append_varchar_length(struct duckdb_appender *appender, const char *value, uint64_t n);
enum duckdb_state duckdb_append_blob(struct duckdb_appender *appender, const void *value, uint64_t n);

#endif
