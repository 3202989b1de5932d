"""Random policies and requests: the C evaluator against a second one, written from Cedar's published semantics.

Policies are made as trees, printed as text (with more or fewer parentheses, spaces and comments than needed) and given
to policy_batch.c by properties.py; the trees are evaluated here. Every outcome (applies, skipped, error) must agree. A
case is one policy and one request."""
import ipaddress
import json
import random

TYPES = ["User", "Team", "Svc::Action", "Cloud::Region"]
IDS = ["a", "b", "c", "d"]
NAMES = ["x", "y", "size", "regions", "a b", "é"]
STRINGS = ["", "a", "b", "aws:us-east-1", "aws:eu-west-1", "*", "a*b", "ab", "ba\"c", "é\n", "\0", "\\", "abcabc"]
IPS = ["10.0.0.0/8", "10.1.2.3", "10.0.0.1/8", "0.0.0.0/0", "127.0.0.1", "127.0.0.0/8", "126.0.0.0/7", "::1",
		"::/0", "2001:db8::/32",
       "2001:db8::1", "224.0.0.1", "224.0.0.0/3", "ff02::1", "10.0.0.0/08", "300.1.1.1", "::ffff:1.2.3.4", "x",
	       "1.2.3.4/33",
       "192.168.0.0/16", "192.168.1.0/24", "::1/127"]
LONGS = [0, 1, 2, -1, 30, 2**63 - 1, -2**63]
METHODS0 = ["isEmpty", "isIpv4", "isIpv6", "isLoopback", "isMulticast"]
METHODS1 = ["contains", "containsAll", "containsAny", "isInRange"]


class Fault(Exception):
	pass


# Values: bool, int, str; Entity; Ip; frozenset; Record (frozenset of pairs). Tagged so that True is not 1.
def B(v): return ("bool", v)
def L(v): return ("long", v)
def S(v): return ("string", v)
def E(t, i): return ("entity", t, i)
def SET(items): return ("set", frozenset(items))
def REC(d): return ("record", frozenset(d.items()))


def IP(text):
	address, slash, length = text.partition("/")
	if ":" in address and "." in address:
		raise Fault("v4 in v6")
	try:
		ip = ipaddress.ip_address(address)
	except ValueError:
		raise Fault("no address")
	most = ip.max_prefixlen
	if slash and (not length.isdigit() or (len(length) > 1 and length[0] == "0") or int(length) > most):
		raise Fault("no length")
	return ("ip", ip, int(length) if slash else most)


# --- the second evaluator

def want(value, tag):
	if value[0] != tag:
		raise Fault("kind")
	return value


def ancestors(env, uid):
	seen, todo = set(), [uid]
	while todo:
		for up in env["parents"].get(todo.pop(), ()):
			if up not in seen:
				seen.add(up)
				todo.append(up)
	return seen


def fields(env, value):
	if value[0] == "entity":
		return env["attrs"].get(value, {})
	return dict(want(value, "record")[1])


def network(ip):
	return ipaddress.ip_network((ip[1], ip[2]), strict=False)


def match(text, pattern):
	"""pattern: a list of characters, None for the wildcard. Every position that can be reached, one character at a time."""
	reached = {0}
	for piece in pattern:
		if piece is None:
			reached = set(range(min(reached), len(text) + 1)) if reached else set()
		else:
			reached = {i + 1 for i in reached if i < len(text) and text[i] == piece}
	return len(text) in reached


def method(env, name, of, args):
	of = ev(env, of)
	args = [ev(env, x) for x in args]
	if name in ("isIpv4", "isIpv6", "isLoopback", "isMulticast", "isInRange"):
		want(of, "ip")
		if name == "isIpv4":
			return B(of[1].version == 4)
		if name == "isIpv6":
			return B(of[1].version == 6)
		if name == "isLoopback":
			return B(network(of).subnet_of(ipaddress.ip_network("127.0.0.0/8" if of[1].version == 4 else "::1/128")))
		if name == "isMulticast":
			return B(network(of).subnet_of(ipaddress.ip_network("224.0.0.0/4" if of[1].version == 4 else "ff00::/8")))
		other = want(args[0], "ip")
		return B(of[1].version == other[1].version and network(of).subnet_of(network(other)))
	items = want(of, "set")[1]
	if name == "isEmpty":
		return B(not items)
	if name == "contains":
		return B(args[0] in items)
	others = want(args[0], "set")[1]
	return B(others <= items if name == "containsAll" else bool(others & items))


def ev(env, e):
	kind = e[0]
	if kind == "lit":
		return e[1]
	if kind == "var":
		return env[e[1]]
	if kind == "and":
		return B(all(want(ev(env, x), "bool")[1] for x in e[1]))
	if kind == "or":
		return B(any(want(ev(env, x), "bool")[1] for x in e[1]))
	if kind == "not":
		return B(not want(ev(env, e[1]), "bool")[1])
	if kind == "neg":
		v = -want(ev(env, e[1]), "long")[1]
		if v > 2**63 - 1:
			raise Fault("overflow")
		return L(v)
	if kind == "if":
		return ev(env, e[2] if want(ev(env, e[1]), "bool")[1] else e[3])
	if kind in ("==", "!="):
		same = ev(env, e[1]) == ev(env, e[2])
		return B(same == (kind == "=="))
	if kind in ("<", "<=", ">", ">="):
		a, b = want(ev(env, e[1]), "long")[1], want(ev(env, e[2]), "long")[1]
		return B({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[kind])
	if kind == "in":
		left, right = want(ev(env, e[1]), "entity"), ev(env, e[2])
		right = {right} if right[0] == "entity" else want(right, "set")[1]
		for item in right:
			want(item, "entity")
		return B(bool(right & ({left} | ancestors(env, left))))
	if kind == "is":
		value = want(ev(env, e[1]), "entity")
		return B(value[1] == e[2])
	if kind == "isin":
		return ev(env, ("and", [("is", e[1], e[2]), ("in", e[1], e[3])]))
	if kind == "has":
		return B(e[2] in fields(env, ev(env, e[1])))
	if kind == "haspath":
		of = e[1]
		for i, name in enumerate(e[2]):
			if not ev(env, ("has", of, name))[1]:
				return B(False)
			of = ("attr", of, name)
		return B(True)
	if kind == "attr":
		found = fields(env, ev(env, e[1])).get(e[2])
		if found is None:
			raise Fault("no attribute")
		return found
	if kind == "like":
		return B(match(want(ev(env, e[1]), "string")[1], e[2]))
	if kind == "set":
		return SET([ev(env, x) for x in e[1]])
	if kind == "record":
		return REC({k: ev(env, x) for k, x in e[1]})
	if kind == "ip":
		return IP(want(ev(env, e[1]), "string")[1])
	if kind == "call":
		return method(env, e[1], e[2], e[3])
	raise AssertionError(kind)


def outcome(env, policy):
	try:
		for e in policy["scope"] + [("not", c) if unless else c for unless, c in policy["conditions"]]:
			if e is not None and not want(ev(env, e), "bool")[1]:
				return "S"
		return "A"
	except Fault:
		return "E"


# --- text

def quote(text, pattern=False):
	out = ""
	for c in text:
		if c is None:
			out += "*"
		elif c in '"\\':
			out += "\\" + c
		elif c == "*" and pattern:
			out += "\\*"
		elif c == "\n":
			out += R.choice(["\\n", "\n", "\\x0a", "\\u{a}"])
		elif c == "\0":
			out += R.choice(["\\0", "\\x00"])
		elif ord(c) > 127:
			out += R.choice([c, "\\u{%x}" % ord(c)])
		else:
			out += c
	return '"%s"' % out


def space():
	return R.choice(["", " ", " ", "\n", " // x\n", "\t"])


def word(text):
	return text.isidentifier() and text.isascii()


def name(e):
	return e if word(e) else quote(e)


LEVEL = {"if": 0, "or": 1, "and": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3, "is": 3,
		"isin": 3, "has": 3,
	 "haspath": 3, "like": 3, "not": 4, "neg": 4}


def show_value(v):
	if v[0] == "bool":
		return "true" if v[1] else "false"
	if v[0] == "long":
		return str(v[1])
	if v[0] == "string":
		return quote(v[1])
	return v[1] + "::" + quote(v[2])


def show(e, least=0):
	"""The text of an expression in a place that takes this level and above."""
	level = LEVEL.get(e[0], 5)
	if e[0] == "lit" and e[1][0] == "long" and e[1][1] < 0:
		level = 4
	text = plain(e)
	if level < least or R.random() < 0.03:
		text = "(" + space() + text + space() + ")"
	return text


def plain_show(e, least=0):
	return plain(e, True)


def plain(e, in_scope=False):
	"""Without parentheses around it; in the scope also without any inside."""
	show = plain_show if in_scope else globals()["show"]
	kind = e[0]
	if kind == "lit":
		return show_value(e[1])
	if kind == "var":
		return e[1]
	if kind in ("and", "or"):
		mark, inner = (" &&", 3) if kind == "and" else (" ||", 2)
		return (mark + space()).join(show(x, inner) for x in e[1])
	if kind == "not":
		return "!" + space() + show(e[1], 4)
	if kind == "neg":
		return "-" + show(e[1], 5 if e[1][0] == "lit" else 4) if e[1][0] != "lit" else "-(" + show(e[1]) + ")"
	if kind == "if":
		return "if " + show(e[1]) + " then " + show(e[2]) + " else " + show(e[3])
	if kind in LEVEL and kind not in ("is", "isin", "has", "haspath", "like", "in"):
		return show(e[1], 4) + space() + kind + space() + show(e[2], 4)
	if kind == "in":
		return show(e[1], 4) + " in " + show(e[2], 4)
	if kind == "is":
		return show(e[1], 4) + " is " + e[2]
	if kind == "isin":
		return show(e[1], 4) + " is " + e[2] + " in " + show(e[3], 4)
	if kind == "has":
		return show(e[1], 4) + " has " + name(e[2])
	if kind == "haspath":
		return show(e[1], 4) + " has " + ".".join(e[2])
	if kind == "attr":
		return show(e[1], 5) + ("." + e[2] if word(e[2]) and R.random() < 0.8 else "[" + quote(e[2]) + "]")
	if kind == "like":
		return show(e[1], 4) + " like " + quote(e[2], True)
	if kind == "set":
		return "[" + ("," + space()).join(show(x) for x in e[1]) + "]"
	if kind == "record":
		return "{" + ("," + space()).join(name(k) + ":" + space() + show(x) for k, x in e[1]) + "}"
	if kind == "ip":
		return "ip(" + show(e[1]) + ")"
	return show(e[2], 5) + "." + e[1] + "(" + ", ".join(show(x) for x in e[3]) + ")"


def show_policy(p):
	text = "".join(R.choice(["", "", "", '@id("x")\n', "@note "]) for _ in range(1)) + ("forbid"
			if p["forbids"] else "permit")
	text += space() + "(" + ("," + space()).join(
		plain(s, True) for s in [s or ("var", n) for s, n in zip(p["scope"], ("principal", "action", "resource"))])
	text += ")"
	for unless, c in p["conditions"]:
		text += space() + (" unless" if unless else " when") + space() + "{" + space() + show(c) + space() + "}"
	return text + space() + ";"


# --- making them

def entity(types=TYPES):
	return E(R.choice(types), R.choice(IDS))


def literal():
	return ("lit", R.choice([lambda: B(R.random() < 0.5), lambda: L(R.choice(LONGS)),
			lambda: S(R.choice(STRINGS)), entity])())


def make(kind, depth):
	"""An expression that is mostly of the kind wanted."""
	if R.random() < 0.04:
		kind = R.choice(["bool", "long", "string", "entity", "set", "record", "ip"])
	if depth <= 0:
		return leaf(kind)
	if R.random() < 0.08:
		return ("if", make("bool", depth - 1), make(kind, depth - 1), make(kind, depth - 1))
	if R.random() < 0.1:
		return ("attr", make(R.choice(["record", "entity"]), depth - 1), R.choice(NAMES))
	d = depth - 1
	if kind == "bool":
		return make_bool(d)
	if kind == "set":
		item = R.choice(["long", "string", "entity", "entity", "ip", "set"])
		return ("set", [make(item, d - 1) for _ in range(R.randrange(4))])
	if kind == "record":
		return ("record", [(n, make(R.choice(["long", "string", "bool", "set"]), d - 1))
				for n in R.sample(NAMES, R.randrange(4))])
	if kind == "long" and R.random() < 0.3:
		return ("neg", make("long", d))
	return leaf(kind)


def make_bool(d):
	kind = R.choice(["and", "and", "or", "or", "not", "==", "==", "!=", "<", "<=", ">", ">=", "in", "in", "is",
			"isin", "has", "haspath",
			 "like", "contains", "containsAll", "containsAny", "isEmpty", "address", "range", "leaf"])
	any_kind = R.choice(["bool", "long", "string", "entity", "set", "record", "ip"])
	if kind in ("and", "or"):
		return (kind, [make("bool", d) for _ in range(R.randrange(2, 5))])
	if kind == "not":
		return ("not", make("bool", d))
	if kind in ("==", "!="):
		return (kind, make(any_kind, d), make(any_kind, d))
	if kind in ("<", "<=", ">", ">="):
		return (kind, make("long", d), make("long", d))
	if kind == "in":
		return (kind, make("entity", d), make("entity", d) if R.random() < 0.5 else ("set", [make("entity",
				d - 1) for _ in range(R.randrange(4))]))
	if kind == "is":
		return (kind, make("entity", d), R.choice(TYPES))
	if kind == "isin":
		return (kind, make("entity", d), R.choice(TYPES), make("entity", d))
	if kind == "has":
		return (kind, make(R.choice(["entity", "record"]), d), R.choice(NAMES))
	if kind == "haspath":
		return (kind, make(R.choice(["entity", "record"]), d), [R.choice(NAMES[:4]) for _ in range(R.randrange(2, 4))])
	if kind == "like":
		pattern = [c if c != "*" or R.random() < 0.5 else None for c in R.choice(STRINGS + ["*us*", "*-1",
				"aws:*", "*c*c", "a*b*c*"])]
		return (kind, make("string", d), pattern)
	if kind == "contains":
		return ("call", kind, make("set", d), [make(any_kind, d)])
	if kind in ("containsAll", "containsAny"):
		return ("call", kind, make("set", d), [make("set", d)])
	if kind == "isEmpty":
		return ("call", kind, make("set", d), [])
	if kind == "address":
		return ("call", R.choice(METHODS0[1:]), make("ip", d), [])
	if kind == "range":
		return ("call", "isInRange", make("ip", d), [make("ip", d)])
	return leaf("bool")


def leaf(kind):
	if kind == "record":
		return ("var", "context") if R.random() < 0.7 else ("record", [])
	if kind == "entity":
		return ("var", R.choice(["principal", "action", "resource"])) if R.random() < 0.6 else ("lit", entity())
	if kind == "set":
		return ("attr", ("var", "context"), "regions")
	if kind == "ip":
		return ("ip", ("lit", S(R.choice(IPS if R.random() < 0.3 else IPS[:14]))))
	if R.random() < 0.2:
		return ("attr", ("var", "context"), R.choice(NAMES))
	return ("lit", {"bool": lambda: B(R.random() < 0.5), "long": lambda: L(R.choice(LONGS)),
			"string": lambda: S(R.choice(STRINGS))}[kind]())


def make_scope(variable):
	kind = R.choice([None] * 16 + ["==", "in", "is", "isin"])
	if kind is None or (variable == "action" and kind in ("is", "isin")):
		return None
	if kind == "is":
		return (kind, ("var", variable), R.choice(TYPES))
	if kind == "isin":
		return (kind, ("var", variable), R.choice(TYPES), ("lit", entity()))
	if kind == "in" and variable == "action" and R.random() < 0.5:
		return (kind, ("var", variable), ("set", [("lit", entity()) for _ in range(R.randrange(4))]))
	return (kind, ("var", variable), ("lit", entity()))


def make_policy():
	return {"forbids": R.random() < 0.5, "scope": [make_scope(v) for v in ("principal", "action", "resource")],
			"conditions": [(R.random() < 0.3, make("bool", R.randrange(1, 5))) for _ in range(R.choice([0, 1, 1,
					1, 2, 3]))]}


def make_value(depth):
	pick = R.randrange(7 if depth > 0 else 5)
	if pick == 0:
		return B(R.random() < 0.5)
	if pick == 1:
		return L(R.choice(LONGS))
	if pick == 2:
		return S(R.choice(STRINGS))
	if pick == 3:
		return entity()
	if pick == 4:
		return IP(R.choice(IPS[:14]))
	if pick == 5:
		return SET([make_value(depth - 1) for _ in range(R.randrange(4))])
	return REC({n: make_value(depth - 1) for n in R.sample(NAMES, R.randrange(4))})


def make_request():
	every = [E(t, i) for t in TYPES for i in IDS]
	parents = {u: R.sample(every, R.randrange(3)) for u in R.sample(every, 8)}  # circles included
	attrs = {u: {n: make_value(1) for n in R.sample(NAMES, R.randrange(3))} for u in parents}
	context = {n: make_value(2) for n in R.sample(NAMES, R.randrange(2, 6))}
	context["regions"] = SET([R.choice([entity(), S(R.choice(STRINGS)), IP(R.choice(IPS[:14]))])
			for _ in range(R.randrange(5))])
	return {"principal": entity(), "action": entity(), "resource": entity(), "context": REC(context),
			"parents": parents, "attrs": attrs}


def to_json(v):
	if v[0] in ("bool", "long", "string"):
		return v[1]
	if v[0] == "entity":
		return {"__entity": {"type": v[1], "id": v[2]}}
	if v[0] == "ip":
		return {"__extn": {"fn": "ip", "arg": "%s/%d" % (v[1], v[2])}}
	if v[0] == "set":
		return [to_json(x) for x in v[1]]
	return {k: to_json(x) for k, x in v[1]}


def uid_json(u):
	return {"type": u[1], "id": u[2]}


def request_json(r):
	return {**{k: uid_json(r[k]) for k in ("principal", "action", "resource")}, "context": to_json(r["context"]),
			"entities": [{"uid": uid_json(u), "parents": [uid_json(p) for p in ups], "attrs": {k: to_json(v)
					for k, v in r["attrs"][u].items()}}
			     for u, ups in r["parents"].items()]}


def run(api, cases=100000, seed=20261115):
	global R
	R = random.Random(seed)
	lines, expected, texts, tally = [], [], [], {}
	many, each = 10, 10
	for _ in range(-(-cases // (many * each))):
		policies, requests = [make_policy() for _ in range(many)], [make_request() for _ in range(each)]
		shown = [show_policy(p) for p in policies]
		lines.append(json.dumps({"policies": shown, "requests": [request_json(r) for r in requests]}))
		for r in requests:
			words = [("f" if p["forbids"] else "p") + outcome(r, p) for p in policies]
			expected.append(words)
			texts.append((shown, r))
			for w in words:
				tally[w] = tally.get(w, 0) + 1
	out = yield "\n".join(lines) + "\n"
	got = out.split("\n")[:-1]
	assert len(got) == len(expected), (len(got), len(expected))
	wrong = 0
	for line, words, (shown, request) in zip(got, expected, texts):
		if line == " ".join(words):
			continue
		for i, (a, b) in enumerate(zip(line.split(" ") if "?" not in line else [line], words)):
			if a != b and wrong < 3:
				print("--- seed %d: C says %s, the second evaluator %s\n%s\n%s" % (seed, a, b, shown[i],
						json.dumps(request_json(request))))
			wrong += a != b
	print("%d cases, %d disagree; %s" % (sum(tally.values()), wrong, " ".join("%s %d" % x
			for x in sorted(tally.items()))))
	# a run that never gets anywhere proves nothing
	assert all(tally.get(w, 0) > cases / 100 for w in ("fA", "fS", "fE", "pA", "pS", "pE")), tally
	assert not wrong, wrong
