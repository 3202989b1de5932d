/* What an instance size stands for on this host. */
#include "engine/postgres/host/size.h"

#include <stdlib.h>
#include <string.h>

/* By the size's number: M10 has 10. Memory is of this host, so the ladder is flat. */
static const struct pg_size sizes[] = {
        {5, 16, 2, 60, 64},       {10, 16, 4, 100, 128},    {20, 24, 4, 150, 128},
        {30, 32, 8, 200, 256},    {40, 64, 8, 300, 512},    {50, 128, 16, 400, 1024},
        {60, 256, 16, 500, 1024}, {80, 512, 32, 600, 2048}, {200, 1024, 32, 800, 4096},
};

static size_t size_row(const char *instance_size)
{
	const char *digits = instance_size + strcspn(instance_size, "0123456789");
	unsigned long number = *digits ? strtoul(digits, NULL, 10) : 10;
	size_t i = 0;
	while (i + 1 < sizeof sizes / sizeof *sizes && sizes[i].number < number)
		i++;
	return i;
}

struct pg_size pg_size_of(const char *instance_size)
{
	return sizes[size_row(instance_size)];
}
