/* The file of a series: its rings and records, without knowing what a rate is. */
#ifndef STEWARD_SERIES_FILE_H
#define STEWARD_SERIES_FILE_H

#include "series/series.h"

struct series_file {
	int fd;
	const struct series_layout *layout;
	struct series_sizes sizes; /* as the file has them */
	size_t record;             /* bytes of one */
	int64_t last_ms;           /* time of the last sample; -1: none yet */
};

struct series_record {
	int64_t time_ms; /* when its interval begins; -1: it has none */
	uint32_t samples;
	float *values; /* as many as the layout has room for */
};

/* -ENOENT; -EBADMSG: it is none, or of another kind. */
must_check int series_file_open(const char *path, const struct series_layout *layout, bool write,
                                struct series_file *ret_file);
/* A new file, beside the one of that path until it is published. */
must_check int series_file_make(const char *path, const struct series_layout *layout, const struct series_sizes *sizes,
                                struct series_file *ret_file);
/* Puts it in its place and closes it. With an error of the caller's it is thrown away, and the error returned. */
must_check int series_file_publish(const char *path, struct series_file *f, int error);
void series_file_close(struct series_file *f);

/* The record of the interval that begins then; one without a time, and with gaps alone, where there is none. */
must_check int series_record_read(const struct series_file *f, enum series_level level, int64_t begin_ms,
                                  struct series_record *r);
must_check int series_record_write(const struct series_file *f, enum series_level level, const struct series_record *r);
/* Numbers of the writer's own, beside the mark, with a checksum. Reading gives how many there are; 0: none, or not all
 * of what was written. */
#define SERIES_NOTE 480
must_check int series_note_write(const struct series_file *f, const uint64_t *numbers, size_t count);
size_t series_note_read(const struct series_file *f, uint64_t ret_numbers[SERIES_NOTE]);
must_check int series_mark_write(struct series_file *f, int64_t last_ms);

/* Calls take() for each interval in [from_ms, to_ms) that has a record, in order; reads many at once. */
must_check int series_records_walk(const struct series_file *f, enum series_level level, int64_t from_ms, int64_t to_ms,
                                   int (*take)(void *ctx, const struct series_record *r), void *ctx);

#endif
