/* YAML, as much of it as JSON values need: block style, and text in double quotes wherever a reader of YAML 1.1 or 1.2
 * could take it for something else. */
#include "cli/output.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define PLAIN_MAX 100
#define KEY_MAX 100 /* a longer key is written with "?": readers bound the others */
#define STEP 2

/* The next code point of valid UTF-8, and how many bytes it has. */
static unsigned code_point(const unsigned char *p, size_t *ret_bytes)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	unsigned c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3fu);
	*ret_bytes = n;
	return c;
}

/* Controls, line breaks and turns of Unicode, the mark of the byte order and what is no character. */
static bool is_escaped(unsigned c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       c == 0xfeff || c == 0xfffe || c == 0xffff;
}

static bool is_plain(const char *text, size_t n)
{
	static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
	if (!n || n > PLAIN_MAX || !isalpha((unsigned char)text[0]) || text[n - 1] == ' ')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !memchr("_-./ ", text[i], 5))
			return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasecmp(text, words[i]) == 0)
			return false;
	return true;
}

static void text_write(FILE *out, const char *text, size_t n)
{
	if (is_plain(text, n)) {
		fwrite(text, 1, n, out);
		return;
	}
	fputc('"', out);
	for (size_t i = 0, bytes; i < n; i += bytes) {
		unsigned c = code_point((const unsigned char *)text + i, &bytes);
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (int)c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (is_escaped(c))
			fprintf(out, "\\u%04X", c);
		else
			fwrite(text + i, 1, bytes, out);
	}
	fputc('"', out);
}

/* The fewest digits that give the same number again. YAML 1.1 wants a point, and a sign in the exponent. */
static void real_write(FILE *out, double number)
{
	char digits[40];
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof digits, "%.*g", precision, number);
		if (strtod(digits, NULL) == number)
			break;
	}
	size_t mantissa = strcspn(digits, "e");
	fprintf(out, "%.*s%s%s", (int)mantissa, digits, memchr(digits, '.', mantissa) ? "" : ".0", digits + mantissa);
}

static bool is_block(const json_t *value)
{
	return json_object_size(value) > 0 || json_array_size(value) > 0;
}

static void scalar_write(FILE *out, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_STRING: text_write(out, json_string_value(value), json_string_length(value)); break;
	case JSON_INTEGER: fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
	case JSON_REAL: real_write(out, json_real_value(value)); break;
	case JSON_OBJECT: fputs("{}", out); break;
	case JSON_ARRAY: fputs("[]", out); break;
	case JSON_NULL: fputs("null", out); break;
	default: fputs(json_is_true(value) ? "true" : "false", out);
	}
	fputc('\n', out);
}

static void block_write(FILE *out, json_t *value, int indent, bool begun);

static void field_write(FILE *out, const char *name, json_t *value, int indent)
{
	size_t n = strlen(name);
	if (n > KEY_MAX) {
		fputs("? ", out);
		text_write(out, name, n);
		fprintf(out, "\n%*s", indent, "");
	} else {
		text_write(out, name, n);
	}
	fputc(':', out);
	if (is_block(value)) {
		fputc('\n', out);
		block_write(out, value, indent + STEP, false);
	} else {
		fputc(' ', out);
		scalar_write(out, value);
	}
}

/* `begun`: the first line is indented already, behind a dash. The depth is that of an answer, which the parser of JSON
 * has bounded. */
static void block_write(FILE *out, json_t *value, int indent, bool begun)
{
	const char *name;
	json_t *child;
	size_t i;
	json_object_foreach(value, name, child)
	{
		fprintf(out, "%*s", begun ? 0 : indent, "");
		begun = false;
		field_write(out, name, child, indent);
	}
	json_array_foreach(value, i, child)
	{
		fprintf(out, "%*s- ", begun ? 0 : indent, "");
		begun = false;
		if (is_block(child))
			block_write(out, child, indent + STEP, true);
		else
			scalar_write(out, child);
	}
}

void output_yaml(FILE *out, json_t *value)
{
	if (is_block(value))
		block_write(out, value, 0, false);
	else
		scalar_write(out, value);
}
