"""script/check-order: arguments whose value depends on the order of their evaluation are found, and others are let be."""
import pathlib
import runpy

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/check-order"
script = runpy.run_path(str(SCRIPT))
HEADER = """
int parse(struct str *text, const char **ret_why);
int look(const struct str *text);
"""
FUNCTION = "static void f(struct str text)\n{\n%s\n}\n"


def faults(body):
	text = FUNCTION % body
	return [(name, function) for _, name, function in script["Checker"](script["prototypes_of"]([HEADER, text]), text).faults()]


@pytest.mark.parametrize("body, found", [
	("tell(parse(&text, &why), why);", [("why", "parse")]),  # what the LDAP check logged on x86-64
	("bool good = tell(k, 1, parse(&text, &why), why);", [("why", "parse")]),
	("if (a)\n\tgood = tell(k, parse(&t, &why), text, why);", [("why", "parse")]),
	("int n = parse(&text, NULL) + text.n;", [("text", "parse")]),
	("struct pair p = {parse(&text, NULL), text.n};", [("text", "parse")]),
	("p = (struct pair){.a = text.n, .b = parse(&text, NULL)};", [("text", "parse")]),
	("tell(unknown(&text), text.n);", [("text", "unknown")]),
	("list[i] = next(&i);", [("i", "next")]),
	("tell(next(&i), next(&i));", [("i", "next"), ("i", "next")]),
])
def test_what_has_no_order_is_found(body, found):
	assert faults(body) == found


@pytest.mark.parametrize("body", [
	"int r = parse(&text, &why);\ntell(r, why);",
	"if (parse(&text, &why) < 0)\n\ttell(why);",
	"while (parse(&text, NULL) == 0 && text.n)\n\ttell(text);",
	"bool good = parse(&text, NULL) == 0 ? text.n : 0;",
	"for (int r = parse(&text, NULL); text.n; r = parse(&text, NULL))\n\ttell(text);",
	"tell(look(&text), text.n);",  # a pointer to const
	"text.n = parse(&text, NULL);",
	"int r = parse(&text, NULL), n = text.n;",
	"tell(&text, parse(&text, NULL));",  # tell() looks when both are evaluated
	"text.parse(&text, NULL);",
	"tell(parse(&text, NULL), other.text, sizeof text);",
	"if (a) {\n\tparse(&text, NULL);\n} else {\n\ttell(text);\n}",
	"LIST_EACH (one, &text)\n\ttell(text);",
])
def test_what_has_an_order_is_let_be(body):
	assert faults(body) == []


@pytest.mark.parametrize("body, found", [
	('fail(c, "%.*s", STR_ARG(arena_vprintf(a, format, args)));', ["arena_vprintf"]),  # what crashed on x86-64
	('fail(c, "%.*s", STR_ARG(json_field(x, arena_z(a, name))));', ["arena_z"]),
	('fail(c, "%.*s %.*s", STR_ARG(text), STR_ARG(x->y[i].name));', []),
	('fail(c, "%.*s", STR_ARG(json_field(json_object_get(x, "a"), "b")));', []),
	('fail(c, "%.*s", STR_ARG(n ? text : STR("none")));', []),
])
def test_what_is_called_twice_is_found(body, found):
	text = FUNCTION % body
	assert [function for _, function in script["Checker"](script["prototypes_of"]([HEADER, text]), text).twice()] == found
