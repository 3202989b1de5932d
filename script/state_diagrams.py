"""Lifecycles of api/*.json as state diagrams, in Mermaid's words.

diagram() takes one member of "lifecycles" (script/lifecycles.py says what it may have), and knows nothing else."""


def time_text(ms):
	"""1000 -> 1 s, 90000 -> 90 s, 3600000 -> 1 h."""
	for unit, size in (("d", 86400000), ("h", 3600000), ("min", 60000), ("s", 1000)):
		if ms >= size and ms % size == 0:
			return "%d %s" % (ms // size, unit)
	return "%d ms" % ms


def label(state, transition):
	"""What moves it, and after "/" the event that tells of it."""
	by, word = transition["by"], transition.get("word")
	after = "after " + time_text(state["ms"]) if by in ("time", "job") and "ms" in state else None
	text = {"time": after, "job": ", ".join(filter(None, (word, after))), "fault": "fault %s" % word}.get(by, word)
	return "%s / %s" % (text, transition["event"]) if transition.get("event") else text


def diagram(lifecycle: dict) -> str:
	"""The text of a stateDiagram-v2. [*] is a document that is not there: not yet, or not any more."""
	lines = ["stateDiagram-v2"]
	for transition in lifecycle["transitions"]:
		starts = transition["from"] if isinstance(transition["from"], list) else [transition["from"]]
		for start in starts:
			state = lifecycle["states"].get(start, {})
			lines.append("    %s --> %s: %s" % (start or "[*]", transition["to"] or "[*]", label(state, transition)))
	return "\n".join(lines) + "\n"
