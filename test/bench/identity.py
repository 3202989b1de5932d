"""What an organization's size costs: the same questions to a small and to a large organization of the same proportions, in
one server, taking turns. Pages have as many entries in both, so that only the size differs."""
import statistics, time

from servers import BASE, Steward, Trouble
from tools import load, ratio, say

SMALL = {'projectCount': 10, 'userCount': 50, 'teamCount': 5}
LARGE = {'projectCount': 10000, 'userCount': 50000, 'teamCount': 5000}
PAGE = 5
ROUNDS_MIN = 5
WANTED = 2


class Organization:
	def __init__(self, server, name, counts):
		self.server, self.counts = server, counts
		wanted = {'name': name, **counts, 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
			{'type': 'user', 'username': 'caller@%s.example' % name, 'roles': ['ORG_MEMBER']}]}
		made = server.call('POST', '/api/test/seed', json={'organizations': [wanted]}, timeout=600).json()
		made, = made['organizations']
		self.id, self.group, self.team = made['id'], made['firstProjectId'], made['firstTeamId']
		owner, caller = made['principals']
		self.owner, self.caller = owner['accessToken'], caller['accessToken']
		self.user = made['firstUserId']
		# The caller's roles in projects come from its team only.
		server.api('POST', '/orgs/%s/teams/%s:addUser' % (self.id, self.team), token=self.owner,
			   json={'id': caller['id']})

	def page(self, count, deep):
		"""Page 1, or the one at 90 % of so many entries."""
		number = max(1, count * 9 // 10 // PAGE) if deep else 1
		return 'itemsPerPage=%d&pageNum=%d' % (PAGE, number)

	def questions(self):
		"""name -> (path, token)"""
		projects, users, teams = (self.counts[n] for n in ('projectCount', 'userCount', 'teamCount'))
		asked = {}
		for name, path, count in (('projects', '/orgs/%s/groups' % self.id, projects),
					  ('users', '/orgs/%s/users' % self.id, users),
					  ('teams', '/orgs/%s/teams' % self.id, teams)):
			asked[name] = '%s?%s' % (path, self.page(count, False))
			asked[name + ', deep'] = '%s?%s' % (path, self.page(count, True))
		of_project = '/groups/%s/users?' % self.group
		asked.update({
			'project by name': '/groups/byName/project-%06d' % (projects // 2),
			'team by name': '/orgs/%s/teams/byName/team-%06d' % (self.id, max(1, teams // 2)),
			'user by name': '/users/byName/user-%06d@%s.example' % (users // 2, self.id),
			'user of the organization': '/orgs/%s/users/%s' % (self.id, self.user),
			'users of a project': of_project + self.page(PAGE, False),
			'users of a project with its teams': of_project + 'flattenTeams=true&' + self.page(PAGE, False),
			'users of a project with the organization\'s': of_project + 'includeOrgUsers=true&' +
				self.page(PAGE, False),
			'the same, deep': of_project + 'includeOrgUsers=true&' + self.page(users // 10, True),
			'users of a team': '/orgs/%s/teams/%s/users?%s' % (self.id, self.team, self.page(PAGE, False)),
			'teams of a project': '/groups/%s/teams?%s' % (self.group, self.page(PAGE, False)),
		})
		asked = {name: (path, self.owner) for name, path in asked.items()}
		asked['permission through a team'] = '/groups/' + self.group, self.caller
		asked['projects that a team gives'] = '/groups?' + self.page(PAGE, False), self.caller
		return asked

	def check(self, asked):
		"""Every answer is what it should be before it is timed."""
		for name, (path, token) in asked.items():
			document = self.server.api('GET', path, token=token).json()
			if 'results' in document and not document['results']:
				raise Trouble('%s: the page is empty' % path)
		total = self.server.api('GET', '/orgs/%s/users' % self.id, token=self.owner).json()['totalCount']
		if total != self.counts['userCount'] + 1:
			raise Trouble('%d users instead of %d' % (total, self.counts['userCount'] + 1))


def micros(bench, server, question):
	path, token = question
	return load(bench, server, BASE + path, 60, bearer=token, connections=1, threads=1, count=200)['p50us']


def measure(bench, server):
	began = time.monotonic()
	sides = {'small': Organization(server, 'small', SMALL), 'large': Organization(server, 'large', LARGE)}
	seconds = round(time.monotonic() - began, 1)
	say('  seeded in %.0f s' % seconds)
	asked = {side: organization.questions() for side, organization in sides.items()}
	for side, organization in sides.items():
		organization.check(asked[side])
	rounds = []
	for number in range(max(ROUNDS_MIN, bench.rounds)):
		order = list(sides) if number % 2 == 0 else list(reversed(sides))
		rounds.append({name: {side: micros(bench, server, asked[side][name]) for side in order}
			       for name in asked['small']})
	return {'small': SMALL, 'large': LARGE, 'seedSeconds': seconds, 'storeBytes': server.disk_bytes(), 'rounds': rounds}


def figure_identity(bench, pair):
	server = Steward(bench.workshop, '--test-control')
	try:
		server.raise_limits()
		result = measure(bench, server)
	finally:
		server.stop()
	rows, result['medians'], result['ratios'] = [], {}, {}
	for name in result['rounds'][0]:
		middle = {side: statistics.median(r[name][side] for r in result['rounds']) for side in ('small', 'large')}
		result['medians'][name], result['ratios'][name] = middle, ratio(middle['large'], middle['small'])
		rows.append((name, '%.2f times (%.0f and %.0f us)' % (result['ratios'][name], middle['large'],
								      middle['small']), 'within %d times' % WANTED))
	result['wanted'] = {'ratioAtMost': WANTED}
	title = '{:,} projects, {:,} users, {:,} teams'.format(*LARGE.values()) + ' beside ' + \
		'{:,}, {:,} and {:,}'.format(*SMALL.values())
	return result, [(title, '', '')] + rows
