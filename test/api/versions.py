"""The dated versions of operations: which one an Accept asks for, and what its answer must say of its end."""
import calendar, datetime, re

DATED = re.compile(r'application/vnd\.svc\.(\d{4}-\d\d-\d\d)\+(?:json|gzip|csv)', re.I)


def media(op, date, form=None):
	"""The media type of an operation's version."""
	return 'application/vnd.svc.%s+%s' % (date, form or ('json' if 'json' in op['produces'] else op['produces'][0]))


def chosen(op, date=None):
	"""The newest version that is not after the date, or of all. None: there was none then."""
	return max((v for v in op['versions'] if date is None or v <= date), default=None)


def asked(op, accept):
	"""The version that an Accept header asks for, and whether by its date."""
	date = DATED.search(accept or '')
	return chosen(op, date.group(1) if date else None), bool(date)


def row(op, date):
	"""The operation as it is in a version."""
	older = op.get('olderVersions', {}).get(date)
	return {**op, **older} if older else op


def ending(op, date):
	"""Deprecation and Sunset of a version's answers; None for what they do not have. No date: no version was chosen."""
	sunset = op.get('sunset', {}).get(date)
	if not date or not (sunset or op.get('deprecated')):
		return None, None
	since = min((v for v in op['versions'] if v > date), default=date)
	return ('@%d' % calendar.timegm(datetime.date.fromisoformat(since).timetuple()),
		sunset and datetime.date.fromisoformat(sunset).strftime('%a, %d %b %Y 00:00:00 GMT'))


class Named:
	"""Names the version in calls, as tools do, until each operation has had a success and a refusal so. From then on,
	and where a test gives headers of its own, calls are left as they are."""

	def __init__(self, api):
		self.api, self.had = api, {}

	def headers(self, method, path, body):
		"""(the operation, headers), or None."""
		op = self.api.match(method, path) if method != 'HEAD' else None
		if not op or len(self.had.setdefault(op['operationId'], set())) == 2:
			return None
		out = {'Accept': media(op, chosen(op))}
		if body is not None:
			out['Content-Type'] = media(op, chosen(op), 'json')
		return op, out

	def note(self, op, status):
		if status < 300 or (400 <= status < 500 and status != 406):
			self.had[op['operationId']].add(status < 300)
