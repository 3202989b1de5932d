/* Nothing here but read() and write(): a confined program has little else. */
#include "confine/pipes.h"

#include <string.h>
#include <unistd.h>

size_t pipe_read(char *ret_bytes, size_t size)
{
	size_t n = 0;
	ssize_t got = 0;
	while (n < size && (got = read(STDIN_FILENO, ret_bytes + n, size - n)) > 0)
		n += (size_t)got;
	return got < 0 ? 0 : n;
}

int pipe_write(const char *text)
{
	for (size_t n = strlen(text), done = 0; done < n;) {
		ssize_t written = write(STDOUT_FILENO, text + done, n - done);
		if (written <= 0)
			return -1;
		done += (size_t)written;
	}
	return 0;
}
