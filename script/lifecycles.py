"""Lifecycles of api/*.json: what a table may say, and what is wrong with one.

  "lifecycles": {
    NAME: {
      "kind": the resource whose documents it is for (the name, when absent),
      "when": {FIELD: VALUE} (only those documents),
      "field": that holds the state,
      "eventField": of the events, for the document's id (optional),
      "states": {STATE: {
        "value": true or false, or a text that is not the state's name,
        "ms": how long it lasts until the job moves it on,
        "reached": C function of the family that runs in the same write (src/catalog/lifecycle.h),
        "final": true, where nothing leads on}},
      "transitions": [{
        "from": a state, a list of them, or null: the document is new,
        "to": a state, or null: the document is deleted,
        "by": "call", "time", "job" or "fault",
        "word": that asks for it (not by time),
        "event": type of the event that it writes (optional)}]}}"""
import re

BY = ("call", "time", "job", "fault")
BY_THE_JOB = ("time", "job")
KEYS = {"kind", "when", "field", "eventField", "states", "transitions"}
STATE_KEYS = {"value", "ms", "reached", "final"}
TRANSITION_KEYS = {"from", "to", "by", "word", "event"}
NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_]*$")


def arrows(lifecycle):
	"""(from, to, transition) for each state that a transition starts from."""
	for transition in lifecycle["transitions"]:
		starts = transition.get("from")
		for start in starts if isinstance(starts, list) else [starts]:
			yield start, transition.get("to"), transition


def value_of(lifecycle, state):
	return lifecycle["states"][state].get("value", state)


def is_boolean(lifecycle):
	return all(isinstance(value_of(lifecycle, state), bool) for state in lifecycle["states"])


def state_faults(lifecycle):
	states = lifecycle["states"]
	values = [value_of(lifecycle, state) for state in states]
	if not states:
		yield "has no states"
	if any(isinstance(value, bool) for value in values) and not is_boolean(lifecycle):
		yield "has states that are true or false beside states that are texts"
	if len(set(values)) != len(values):
		yield "has two states with one value"
	for name, state in states.items():
		hook, ms = state.get("reached"), state.get("ms")
		if not NAME.match(name):
			yield "state %s: is no word" % name
		if set(state) - STATE_KEYS:
			yield "state %s: what is %s?" % (name, ", ".join(sorted(set(state) - STATE_KEYS)))
		if hook is not None and not NAME.match(hook):
			yield "state %s: %s is no name of a C function" % (name, hook)
		if ms is not None and (not isinstance(ms, int) or isinstance(ms, bool) or ms < 0):
			yield "state %s: ms must be a number of milliseconds" % name
		ways = [t for start, _, t in arrows(lifecycle) if start == name]
		timed = [t for t in ways if t.get("by") in BY_THE_JOB]
		if len(timed) > 1:
			yield "state %s: time and the job can move it one way only" % name
		if bool(timed) != (ms is not None):
			yield "state %s: ms belongs to states that time or the job moves on, and they need it" % name
		if bool(ways) == bool(state.get("final")):
			yield "state %s: needs a way out, or \"final\", and not both" % name


def transition_faults(lifecycle):
	seen = set()
	for start, end, t in arrows(lifecycle):
		where, word = "%s -> %s" % (start or "[*]", end or "[*]"), t.get("word")
		if set(t) - TRANSITION_KEYS or not {"from", "to", "by"} <= set(t):
			yield "%s: a transition has from, to, by, and may have word and event" % where
		for state in (start, end):
			if state is not None and state not in lifecycle["states"]:
				yield "%s: no state %s" % (where, state)
		if start is None and end is None:
			yield "%s: leads nowhere" % where
		if start is None and t.get("by") != "call":
			yield "%s: a new document comes by a call" % where
		if t.get("by") not in BY:
			yield "%s: by must be one of %s" % (where, ", ".join(BY))
		elif (t["by"] == "time") == bool(word):
			yield "%s: all but time need a word, and time has none" % where
		if word and (start, word) in seen:
			yield "%s: two ways for the word %s" % (where, word)
		seen.add((start, word))


def reach_faults(lifecycle):
	all_arrows = list(arrows(lifecycle))
	if sum(start is None for start, _, _ in all_arrows) != 1:
		yield "needs one transition from null: how a document begins"
	found, waiting = set(), [None]
	while waiting:
		here = waiting.pop()
		for start, end, _ in all_arrows:
			if start == here and end is not None and end not in found:
				found.add(end)
				waiting.append(end)
	after = {start: end for start, end, t in all_arrows if t.get("by") == "time"}
	for state in lifecycle["states"]:
		if state not in found:
			yield "state %s: cannot be reached" % state
		passed, here = set(), after.get(state)
		while here is not None and here not in passed:
			passed.add(here)
			here = after.get(here)
		if state in passed:
			yield "state %s: time alone leads back to it, for ever" % state


def field_faults(lifecycle, field):
	"""`field`: the schema of the field that holds the state; None: there is no such field."""
	if field is None:
		yield "no field %s in its schema" % lifecycle["field"]
	elif is_boolean(lifecycle) != (field.get("type") == "boolean"):
		yield "the field %s is of another type than the states" % lifecycle["field"]
	for state in lifecycle["states"]:
		if field and "enum" in field and value_of(lifecycle, state) not in field["enum"]:
			yield "state %s: the field %s cannot have it" % (state, lifecycle["field"])


def faults(lifecycle, field, event_types):
	"""Everything that is wrong with a table, in words."""
	if set(lifecycle) - KEYS or not {"field", "states", "transitions"} <= set(lifecycle):
		return ["a lifecycle has field, states, transitions, and may have kind, when, eventField"]
	found = [*state_faults(lifecycle), *transition_faults(lifecycle)]
	if not found:
		found = [*reach_faults(lifecycle), *field_faults(lifecycle, field)]
	if len(lifecycle.get("when", {})) > 1:
		found.append("when names one field")
	for t in lifecycle["transitions"]:
		if t.get("event") is not None and t["event"] not in event_types:
			found.append("no events of the type %s" % t["event"])
	return found
