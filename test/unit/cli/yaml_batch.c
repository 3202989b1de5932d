/* Reads a JSON value on each line and writes it as a YAML document; yaml_property.py reads those back. */
#include "base/json.h"
#include "cli/output.h"

#include <stdlib.h>

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	json_setup();
	for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
		json_t *value = json_loadb(line, (size_t)n, JSON_DECODE_ANY, NULL);
		if (!value)
			return 1;
		puts("---");
		output_yaml(stdout, value);
		json_decref(value);
	}
	free(line);
	return ferror(stdout) != 0;
}
