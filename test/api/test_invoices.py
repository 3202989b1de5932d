"""Invoices, their lines and cost queries; who pays, who is warned and locked, and the way out. On a clock of its own: months pass."""
import calendar, csv, datetime, io, json, re, time

import pytest

import client, conftest, derive, receivers, versions
from client import NO_ID, cli, links, ok, pass_time, refused, unique, until
from test_clusters import body, path, region, state

LOCK, GRACE = 10, 5
HOSTILE = '@SUM(1+1)' + 'é' * 40 + ',('  # a formula, longer than its column, and what must be escaped
ISSUER = {'name': 'Databases Ltd', 'address': ['1 Quay Street', 'Galway'], 'taxId': 'IE1234567T'}
BOOK = {'currency': 'EUR', 'taxPercent': '7.5', 'issuer': ISSUER, 'dueDays': 21, 'skus': [
	{'id': 'AWS_INSTANCE_M10', 'description': 'A node', 'service': 'Clusters', 'provider': 'AWS', 'unit': 'hours',
	 'prices': [{'price': '0.0833333'}]},
	{'id': 'AWS_STORAGE', 'description': 'A disk', 'service': 'Storage', 'provider': 'AWS', 'unit': 'GB hours', 'prices': [
		{'tiers': [{'from': 0, 'to': 500, 'price': '0.00015'}, {'from': 500, 'price': '0.0001'}]}]}]}


@pytest.fixture(scope='module')
def inbox():
	box = receivers.Inbox()
	yield box
	box.stop()


@pytest.fixture(scope='module')
def cashier():
	box = receivers.Http()
	yield box
	box.stop()


@pytest.fixture(scope='module')
def billed(inbox, cashier, tmp_path_factory):
	book = tmp_path_factory.mktemp('prices') / 'book.json'
	book.write_text(json.dumps(BOOK))
	s = client.Server('--price-book', book, '--billing-lock-days', LOCK, '--billing-grace-days', GRACE, '--smtp-url', inbox.url,
			  '--smtp-from', 'steward@example.com', '--outbox-private', '--outbox-endpoint', 'billing=' + cashier.url,
			  record=client.EXCHANGES)
	s.versions = versions.Named(derive.Api())
	s.control('engine', {'seconds': 0})
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def calm(billed):
	billed.refill()


def now(server):
	return calendar.timegm(time.strptime(server.control('clock', method='GET')['now'], '%Y-%m-%dT%H:%M:%SZ'))


def invoices(server, query='', org=None):
	return ok(server.get('/orgs/%s/invoices%s' % (org or server.org, query)))['results']


def pending(server, org=None):
	found = ok(server.get('/orgs/%s/invoices/pending' % (org or server.org)))['results']
	return found[0] if found else None


def moved(server, seconds):
	"""The clock goes on, and the invoice is of the new time."""
	server.advance(seconds)
	at = now(server)
	server.refill()
	# The job is due each five minutes.
	return until(lambda: (lambda p: p if p and stamp(p['updated']) >= at - at % 300 else None)(pending(server)), what='an invoice')


def stamp(text):
	return calendar.timegm(time.strptime(text, '%Y-%m-%dT%H:%M:%SZ'))


def next_month(server):
	t = datetime.datetime.fromtimestamp(now(server), datetime.timezone.utc)
	first = datetime.datetime(t.year + t.month // 12, t.month % 12 + 1, 1, tzinfo=datetime.timezone.utc)
	return int(first.timestamp()) - now(server)


def operator(server, *words, **more):
	return cli('billing', *words, '--data', server.data_dir, **more)


@pytest.fixture(scope='module')
def month(billed):
	"""A month with a cluster in it, closed; and the two projects."""
	if next_month(billed) < 4 * 86400:  # what follows is of one month, whatever day it is
		billed.advance(next_month(billed))
	group, other = billed.project()['id'], billed.project(name=HOSTILE)['id']
	for g, name in ((group, 'one'), (other, 'two')):
		ok(billed.post(path(g), json=body(name)), 201)
		pass_time(billed, lambda: state(billed, g, name) == 'IDLE')
	moved(billed, 3600 * 5)
	moved(billed, 86400 * 2)
	moved(billed, next_month(billed) + 3600)
	closed = invoices(billed, '?statusNames=CLOSED&statusNames=FAILED')[0]
	r = billed.get('/orgs/%s/invoices/%s' % (billed.org, closed['id']))
	assert 'X-Steward-Invoice' not in r.headers
	whole = billed.get('/orgs/%s/invoices/%s' % (billed.org, closed['id']), headers={'X-Steward-Whole': 'true'})
	assert whole.json() == ok(r)
	return {'group': group, 'other': other, 'id': closed['id'], 'invoice': {**ok(r), **json.loads(whole.headers['X-Steward-Invoice'])}}


def test_the_invoice(billed, month):
	one = month['invoice']
	lines = one['lineItems']
	assert lines and one['statusName'] in ('CLOSED', 'FAILED') and one['orgId'] == billed.org
	assert sum(x['totalPriceCents'] for x in lines) == one['subtotalCents'] > 0
	assert one['salesTaxCents'] == int(one['subtotalCents'] * 75 / 1000 + 0.5)
	assert one['amountBilledCents'] == one['subtotalCents'] + one['salesTaxCents'] and one['creditsCents'] == 0
	assert one['currency'] == 'EUR' and one['taxPercent'] == 7.5 and one['issuer'] == ISSUER
	assert one['customer'] == {'name': ok(billed.get('/orgs/' + billed.org))['name'], 'address': []}
	assert stamp(one['dueDate']) == stamp(one['endDate']) + 21 * 86400
	assert re.fullmatch(r'\d{4}-\d\d-01T00:00:00Z', one['startDate']) and re.fullmatch(r'\d{4}-\d\d-01T00:00:00Z', one['endDate'])
	assert {x['sku'] for x in lines} >= {'AWS_INSTANCE_M10', 'AWS_STORAGE'}
	assert {(x['groupId'], x['clusterName']) for x in lines} == {(month['group'], 'one'), (month['other'], 'two')}
	day = [x for x in lines if x['sku'] == 'AWS_INSTANCE_M10' and x['clusterName'] == 'one' and x['quantity'] == 72]
	assert day and all(stamp(x['endDate']) - stamp(x['startDate']) == 86400 and x['unit'] == 'hours' for x in day)
	assert all(abs(x['totalPriceCents'] - x['quantity'] * x['unitPriceDollars'] * 100) < 1 for x in lines)
	tiers = [x for x in lines if x['sku'] == 'AWS_STORAGE']
	assert {(x['tierLowerBound'], x.get('tierUpperBound')) for x in tiers} == {(0, 500), (500, None)}
	assert sum(x['quantity'] for x in tiers if x['tierLowerBound'] == 0) == pytest.approx(500)
	assert set(links(one)) >= {'self'} and links(one)['self'].endswith('/invoices/' + one['id'])
	evidence = [json.loads(x) for x in operator(billed, 'evidence', '--org', billed.org, '--day', day[0]['startDate'][:10],
						    '--cluster', 'one').stdout.splitlines()]
	seconds = [x['amount'] * (stamp(x['to']) - stamp(x['from'])) for x in evidence if x['sku'] == 'AWS_INSTANCE_M10']
	assert sum(seconds) == day[0]['quantity'] * 3600 and len(seconds) == 3, 'a line leads to its measurements'
	assert operator(billed, 'evidence', '--org', billed.org, '--day', 'today', check=False).returncode == 1
	refused(billed.get('/orgs/%s/invoices/%s' % (billed.org, NO_ID)), 404, 'INVOICE_NOT_FOUND')


def test_the_list(billed, month):
	"""Filters, order and pages."""
	one = month['invoice']
	all_ = invoices(billed)
	assert [x['startDate'] for x in all_] == sorted((x['startDate'] for x in all_), reverse=True) and len(all_) >= 2
	assert [x['id'] for x in invoices(billed, '?orderBy=asc&sortBy=START_DATE')] == [x['id'] for x in reversed(all_)]
	assert {x['statusName'] for x in invoices(billed, '?statusNames=PENDING')} == {'PENDING'}
	assert one['id'] in {x['id'] for x in invoices(billed, '?fromDate=%s&toDate=%s' % (one['startDate'][:10], one['endDate'][:10]))}
	assert one['id'] not in {x['id'] for x in invoices(billed, '?fromDate=%s' % one['endDate'][:10])}
	assert not invoices(billed, '?toDate=%s' % '2020-01-01')
	page = ok(billed.get('/orgs/%s/invoices?itemsPerPage=1&pageNum=2' % billed.org))
	assert [x['id'] for x in page['results']] == [all_[1]['id']] and page['totalCount'] == len(all_)
	assert all('lineItems' not in x and links(x)['self'] for x in all_)
	refused(billed.get('/orgs/%s/invoices?statusNames=LOST' % billed.org), 400)
	refused(billed.get('/orgs/%s/invoices' % NO_ID), 404)


def test_pending(billed, month):
	"""It grows each five minutes: usage is not empty, or an hour old, while clusters run."""
	first = pending(billed)
	for _ in range(2):
		soon = moved(billed, 600)
		assert soon['subtotalCents'] > first['subtotalCents']
		first = soon
	then = moved(billed, 7200)
	assert then['id'] == first['id'] and then['statusName'] == 'PENDING' and then['subtotalCents'] > first['subtotalCents']
	assert sum(x['totalPriceCents'] for x in then['lineItems']) == then['subtotalCents']
	refused(billed.get('/orgs/%s/invoices/pending' % NO_ID), 404)


def test_csv(billed, month):
	"""By the path and by the media type; the lines of the JSON, and no formula."""
	where = '/orgs/%s/invoices/%s' % (billed.org, month['id'])
	answer = billed.get(where + '/csv')
	assert answer.status_code == 200 and answer.headers['Content-Type'] == 'application/vnd.svc.2023-01-01+csv'
	rows = list(csv.DictReader(io.StringIO(answer.text)))
	lines = month['invoice']['lineItems']
	assert [(r['SKU'], r['Start'], int(r['Total Cents'])) for r in rows] == [(x['sku'], x['startDate'], x['totalPriceCents']) for x in lines]
	assert {r['Project'] for r in rows if r['Project Id'] == month['other']} == {"'" + HOSTILE}
	assert billed.get(where, headers={'Accept': 'application/vnd.svc.2023-01-01+csv'}).text == answer.text
	file = billed.tmp / 'invoice.pdf'
	cli('invoices', 'pdf', month['id'], '-f', file, '--data', billed.data_dir)
	text = file.read_bytes()
	assert text.startswith(b'%PDF-1.4') and text.endswith(b'%%EOF\n') and b'(INVOICE %s)' % month['id'].encode() in text
	assert ('%d.%02d)' % divmod(month['invoice']['amountBilledCents'], 100)).encode() in text
	shown = [x[1:-len(') Tj T*')].replace('\\', '') for x in text.decode('latin-1').splitlines() if x.endswith(') Tj T*')]
	head, = [x for x in shown if x.startswith('Project ')]
	rows = [x for x in shown if 'AWS_' in x]
	sums = [x for x in shown[shown.index(head):] if x.split()[:1] and x.split()[0] in ('Subtotal', 'Credits', 'Tax', 'Billed', 'Paid', 'To')]
	assert head.endswith(' Amount EUR') and rows and len(sums) == 6
	# Below the word, at its right end, whatever stands left of it.
	assert {len(x) for x in rows + sums} == {len(head)} and all(re.search(r'  -?\d+\.\d\d$', x) for x in rows + sums), shown
	unit = head.index('Unit')
	assert {x[unit:unit + 8].strip() for x in rows} == {'hours', 'GB hours'}
	for said in ('From          Databases Ltd', '              Galway', '              Tax number IE1234567T', 'Currency      EUR',
		     'To            ' + ok(billed.get('/orgs/' + billed.org))['name'], 'Due           ' + month['invoice']['dueDate'][:10]):
		assert said in shown, said
	assert any(x.startswith('Tax (7.5%) ') for x in sums) and any(x.startswith('To be paid by ') for x in sums)
	assert text.count(b'/URI (%s)' % links(month['invoice'])['self'].encode()) == 1, 'the head leads to the invoice'
	table = int(text.split(b'startxref\n')[1].split()[0])
	assert text[table:].startswith(b'xref')
	for number, line in enumerate(text[table:].splitlines()[3:], 1):
		if line.endswith(b' n '):
			assert text[int(line.split()[0]):].startswith(b'%d 0 obj' % number)
	assert cli('invoices', 'pdf', NO_ID, '--data', billed.data_dir, check=False).returncode == 1
	head = billed.head(where + '/csv')
	assert head.status_code == 200 and not head.content
	refused(billed.get('/orgs/%s/invoices/%s/csv' % (billed.org, NO_ID)), 404, 'INVOICE_NOT_FOUND')


def search(server, month, **body):
	query = body.pop('query', '?itemsPerPage=500')
	return server.request('GET', '/orgs/%s/invoices/%s/lineItems:search%s' % (server.org, month['id'], query), json=body)


def test_search(billed, month):
	lines = month['invoice']['lineItems']
	paid = [x for x in lines if x['totalPriceCents']]
	found = ok(search(billed, month, filters={'groupIds': [month['group']], 'skuServices': ['Clusters']}))
	assert found['totalCount'] == len([x for x in paid if x['groupId'] == month['group'] and x['sku'].startswith('AWS_INSTANCE')]) > 0
	assert {(x['clusterName'], x['description']) for x in found['results']} == {('one', 'A node')}
	assert ok(search(billed, month, filters={'includeZeroCentLineItems': True}))['totalCount'] == len(lines)
	cluster = ok(billed.get(path(month['other'], 'two')))['id']
	assert {x['groupId'] for x in ok(search(billed, month, filters={'clusterIds': [cluster]}))['results']} == {month['other']}
	day = max(x['startDate'] for x in lines)
	one_day = ok(search(billed, month, filters={'usageStartDate': day[:10], 'usageEndDate': day[:10]}))['results']
	assert one_day and {x['usageDate'] for x in one_day} == {day}
	billed_then = ok(search(billed, month, filters={'billStartDate': one_day[0]['billDate'][:10]}))['results']
	assert {x['usageDate'] for x in billed_then} == {day}
	prices = [x['totalPriceCents'] for x in ok(search(billed, month, sortField='TOTAL_PRICE_CENTS', sortOrder='DESCENDING'))['results']]
	assert prices == sorted((x['totalPriceCents'] for x in paid), reverse=True)
	days = [x['usageDate'] for x in ok(search(billed, month, sortField='USAGE_DATES', sortOrder='ASCENDING'))['results']]
	assert days == sorted(days)
	page = ok(search(billed, month, query='?itemsPerPage=2&pageNum=2', sortField='TOTAL_PRICE_CENTS', sortOrder='DESCENDING'))
	assert [x['totalPriceCents'] for x in page['results']] == prices[2:4]
	refused(search(billed, month, filters={'usageStartDate': '2026-02-02', 'usageEndDate': '2026-02-01'}), 400, 'VALIDATION_ERROR')
	refused(search(billed, month, sortField='NAME'), 400)
	refused(search(billed, {'id': NO_ID}), 404, 'INVOICE_NOT_FOUND')


def asked(server, **body):
	token = ok(server.post('/orgs/%s/billing/costExplorer/usage' % server.org, json=body), 202)['token']
	assert len(token) == 64
	return ok(server.get('/orgs/%s/billing/costExplorer/usage/%s' % (server.org, token))), token


def test_cost_explorer(billed, month):
	one = month['invoice']
	whole = {'startDate': one['startDate'][:10], 'endDate': one['endDate'][:10]}
	answer, token = asked(billed, **whole)
	assert [(x['usageDate'], x['usageCents']) for x in answer['usageDetails']] == [(whole['startDate'], one['subtotalCents'])]
	assert answer['totalCents'] == one['subtotalCents'] and answer['currency'] == 'EUR' and 'forecast' not in answer
	groups, _ = asked(billed, groupBy='projects', **whole)
	wanted = {g: sum(x['totalPriceCents'] for x in one['lineItems'] if x['groupId'] == g) for g in (month['group'], month['other'])}
	assert {x['id']: x['usageCents'] for x in groups['usageDetails']} == wanted
	services, _ = asked(billed, groupBy='services', projects=[month['group']], **whole)
	assert {x['id'] for x in services['usageDetails']} == {'Clusters', 'Storage'} and services['totalCents'] == wanted[month['group']]
	disks, _ = asked(billed, groupBy='clusters', services=['Storage'], **whole)
	assert disks['totalCents'] == sum(x['totalPriceCents'] for x in one['lineItems'] if x['sku'] == 'AWS_STORAGE')
	assert {x['name'] for x in disks['usageDetails']} == {'one', 'two'}
	later = datetime.date.fromisoformat(whole['endDate']) + datetime.timedelta(days=31)
	until_now, _ = asked(billed, groupBy='organizations', startDate=whole['startDate'], endDate=later.isoformat())
	assert {x['id'] for x in until_now['usageDetails']} == {billed.org} and len(until_now['usageDetails']) == 2
	assert until_now['forecast']['forecastCents'] >= until_now['forecast']['usageCents'] > 0
	days = [x for x in one['lineItems'] if x['startDate'][:10] == max(y['startDate'][:10] for y in one['lineItems'])]
	last, _ = asked(billed, startDate=days[0]['startDate'][:10], endDate=whole['endDate'])
	assert last['totalCents'] == sum(x['totalPriceCents'] for x in days)
	as_csv = billed.get('/orgs/%s/billing/costExplorer/usage/%s' % (billed.org, token),
			    headers={'Accept': 'application/vnd.svc.2023-01-01+csv'})
	assert as_csv.headers['Content-Type'] == 'application/vnd.svc.2023-01-01+csv'
	assert as_csv.text.splitlines() == ['Month,Id,Name,Cents', '%s,,,%d' % (whole['startDate'], one['subtotalCents'])]
	refused(billed.post('/orgs/%s/billing/costExplorer/usage' % billed.org, json={'startDate': '2026-02-01', 'endDate': '2026-01-31'}),
		400, 'VALIDATION_ERROR', 'endDate')
	refused(billed.get('/orgs/%s/billing/costExplorer/usage/%s' % (billed.org, 'f' * 64)), 404, 'COST_EXPLORER_QUERY_NOT_FOUND')
	stranger, = billed.seed({'name': unique(), 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	theirs = billed.api_for(stranger['principals'][0])
	refused(theirs.get('/orgs/%s/billing/costExplorer/usage/%s' % (stranger['id'], token)), 404)
	refused(theirs.get('/orgs/%s/invoices/%s' % (stranger['id'], month['id'])), 404)
	assert int(billed.rows("SELECT count(*) FROM doc WHERE kind = 'cost_query'")[0][0]) > 0


def events(server, org=None, *types):
	found = ok(server.get('/orgs/%s/events?itemsPerPage=500%s' % (org or server.org, ''.join('&eventType=' + t for t in types))))['results']
	return [e['eventTypeName'] for e in found]


def test_corrections_are_lines(billed, month):
	before = pending(billed)
	operator(billed, 'correct', '--org', billed.org, '--cents', '-150', '--note', 'for the outage')
	after = pending(billed)
	assert after['subtotalCents'] == before['subtotalCents'] - 150
	line, = [x for x in after['lineItems'] if x['sku'] == 'CREDIT']
	assert line['totalPriceCents'] == -150 and line['note'] == 'for the outage'
	assert len(after['lineItems']) == len(before['lineItems']) + 1
	assert ok(billed.get('/orgs/%s/invoices/%s' % (billed.org, month['id'])))['lineItems'] == month['invoice']['lineItems']
	operator(billed, 'credit', '--org', billed.org, '--cents', 100, '--note', 'welcome')
	with_credit = moved(billed, 86400)
	assert with_credit['creditsCents'] == 100
	assert sum(x['totalPriceCents'] for x in with_credit['lineItems']) == with_credit['subtotalCents']
	assert 'CREDIT_ISSUED' in events(billed, None, 'CREDIT_ISSUED')


def test_payment(billed, month, inbox, cashier):
	"""Without a way to pay an organization is warned, locked, refused with the way out, its clusters paused; and unlocked by payment."""
	hook = [r.json for r in cashier.wait() if r.json['id'] == month['id']]
	assert len(hook) == 1 and hook[0]['amountBilledCents'] == month['invoice']['amountBilledCents'] and hook[0]['currency'] == 'EUR'
	assert hook[0]['statusName'] == 'FAILED' and 'paymentMethod' in hook[0], 'as it is: nobody can be charged'
	user = unique('payer') + '@example.com'
	operator(billed, 'method', '--org', billed.org, '--email', user)

	def one():
		return ok(billed.get('/orgs/%s/invoices/%s' % (billed.org, month['id'])))
	until(lambda: one()['statusName'] == 'FAILED', what='a failure, because nobody can be charged')
	assert one()['payments'][0]['statusName'] == 'FAILED'
	assert events(billed, None, 'CHARGE_FAILED') and events(billed, None, 'ORG_SUSPENSION_DATE_CHANGED')
	moved(billed, 86400 * (LOCK - 2))
	until(lambda: [x for x in inbox.letters if user in x.rcpt_tos and b'is locked on' in x.content], what='a warning')
	assert not events(billed, None, 'ORG_LOCKED')
	moved(billed, 86400 * 3)
	until(lambda: events(billed, None, 'ORG_LOCKED'), what='the lock')
	refusal = refused(billed.post('/groups', json={'name': unique(), 'orgId': billed.org}), 402, 'ORG_LOCKED', month['id'])
	assert 'paid' in refusal['detail'] and 'read and delete' in refusal['detail']
	refused(billed.post(path(month['group']), json=body('three')), 402, 'ORG_LOCKED')
	refused(billed.post('/orgs', json={'name': unique()}), 402, 'ORG_LOCKED', month['id'])
	refused(billed.patch(path(month['group'], 'one'), json={'terminationProtectionEnabled': True}), 402, 'ORG_LOCKED')
	assert state(billed, month['group'], 'one') == 'IDLE'
	asked(billed, startDate='2026-01-01', endDate='2026-02-01')
	assert int(billed.rows("SELECT count(*) FROM doc WHERE kind = 'org_lock'")[0][0]) == 1
	until(lambda: [x for x in inbox.letters if user in x.rcpt_tos and b'make nothing new' in x.content.replace(b'=\r\n', b'')], what='a letter')
	moved(billed, 86400 * (GRACE + 1))
	until(lambda: events(billed, None, 'ORG_CLUSTERS_PAUSED'), what='the pause')
	pass_time(billed, lambda: ok(billed.get(path(month['group'], 'one')))['paused'] and state(billed, month['group'], 'one') == 'IDLE')
	ok(billed.delete(path(month['other'], 'two')), 202)
	shown = json.loads(operator(billed, 'show', '--org', billed.org, '-o', 'json').stdout)
	assert shown['lock']['invoiceId'] == month['id']
	assert operator(billed, 'paid', month['id'], '--cents', 10 ** 9, check=False).returncode == 1
	for late in [x for x in shown['invoices'] if x['statusName'] == 'FAILED']:
		operator(billed, 'paid', late['id'], '--note', 'ch_1')
	assert one()['statusName'] == 'PAID' and one()['amountPaidCents'] == one()['amountBilledCents']
	assert [p['statusName'] for p in one()['payments']] == ['FAILED', 'PAID']
	assert events(billed, None, 'ORG_ACTIVATED') and events(billed, None, 'CHARGE_SUCCEEDED')
	billed.project()
	ok(billed.patch(path(month['group'], 'one'), json={'paused': False}))
	assert operator(billed, 'paid', month['id'], check=False).returncode == 1
	operator(billed, 'refund', month['id'], '--cents', 50, '--note', 'goodwill')
	assert one()['refunds'][0]['amountCents'] == 50
	# What is gone keeps its name, in months that are closed and in the open one.
	pass_time(billed, lambda: billed.get(path(month['other'], 'two')).status_code == 404)
	for begin, end in ((month['invoice']['startDate'], month['invoice']['endDate']), (month['invoice']['startDate'], pending(billed)['endDate'])):
		costs, _ = asked(billed, groupBy='clusters', startDate=begin[:10], endDate=end[:10])
		assert {x['usageDate'] for x in costs['usageDetails'] if x.get('name') == 'two'} >= {begin[:10]}
		assert all(x['name'] in ('one', 'two') for x in costs['usageDetails'] if 'id' in x)


def test_methods_and_links(billed, month):
	"""Who has a method fails only when the operator says so; who is paid for is shown with who pays."""
	other, = billed.seed({'name': unique('linked'), 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	theirs = billed.api_for(other['principals'][0])
	operator(billed, 'method', '--org', billed.org, '--method', 'cus_1')
	operator(billed, 'link', '--org', other['id'], '--payer', billed.org)
	assert operator(billed, 'link', '--org', billed.org, '--payer', other['id'], check=False).returncode == 1
	moved(billed, 3600)
	moved(billed, next_month(billed) + 3600)
	closed = invoices(billed)[1]
	assert closed['statusName'] == 'CLOSED'
	assert [x['orgId'] for x in closed['linkedInvoices']] == [other['id']]
	assert ok(theirs.get(links(closed['linkedInvoices'][0])['self']))['orgId'] == other['id']
	assert all('linkedInvoices' not in x for x in invoices(billed, '?viewLinkedInvoices=false'))
	operator(billed, 'failed', closed['id'], '--note', 'card expired')
	moved(billed, 3600)
	moved(billed, 86400 * LOCK + 3600)
	until(lambda: billed.post('/groups', json={'name': unique(), 'orgId': billed.org}).status_code == 402, what='the lock')
	operator(billed, 'unlock', '--org', billed.org)
	moved(billed, 3600)
	group = billed.project()['id']  # the lock is not back within the hour
	operator(billed, 'forgive', closed['id'])
	assert ok(billed.get('/orgs/%s/invoices/%s' % (billed.org, closed['id'])))['statusName'] == 'FORGIVEN'
	for words in (['correct', '--org', billed.org, '--cents', -2 ** 63], ['paid', NO_ID], ['lock', '--org', NO_ID], ['unlock', '--org', billed.org], ['credit', '--org', billed.org, '--cents', 0],
		      ['method', '--org', billed.org], ['method', '--org', billed.org, '--method', '4111 1111 1111 1111'], ['nothing']):
		assert operator(billed, *words, check=False).returncode in (1, 2)
	operator(billed, 'lock', '--org', other['id'], '--note', 'asked for')
	refused(theirs.post('/groups', json={'name': unique(), 'orgId': other['id']}), 402, 'ORG_LOCKED')
	key = other['principals'][0]
	refused(billed.post('/groups/%s:migrate' % group, json={
		'destinationOrgId': other['id'], 'destinationOrgPublicApiKey': key['publicKey'],
		'destinationOrgPrivateApiKey': key['privateKey']}), 402, 'ORG_LOCKED')
	operator(billed, 'unlock', '--org', other['id'])
	ok(theirs.post('/groups', json={'name': unique(), 'orgId': other['id']}))
	operator(billed, 'link', '--org', other['id'])
	assert events(theirs, other['id'], 'ORG_LOCKED', 'ORG_ACTIVATED', 'ORG_LINKED_TO_PAYING_ORG', 'ORG_UNLINKED_FROM_PAYING_ORG')


def test_a_spending_limit(billed, month, inbox):
	"""Told before, locked beyond it, and no longer once it is gone. What runs goes on."""
	first = moved(billed, 86400)
	operator(billed, 'limit', '--org', billed.org, '--cents', first['subtotalCents'] * 11 // 10)
	moved(billed, 3600)
	until(lambda: events(billed, None, 'ORG_INVOICE_OVER_THRESHOLD'), what='a warning')
	billed.project()
	moved(billed, 86400 * 2)
	refusal = until(lambda: (lambda r: r.status_code == 402 and refused(r, 402, 'ORG_LOCKED'))(
		billed.post('/groups', json={'name': unique(), 'orgId': billed.org})), what='the lock')
	assert 'spending limit' in refusal['detail'] and 'ends with the month' in refusal['detail']
	moved(billed, 86400 * (GRACE + 1))
	assert state(billed, month['group'], 'one') == 'IDLE' and not ok(billed.get(path(month['group'], 'one')))['paused']
	operator(billed, 'limit', '--org', billed.org, '--cents', 0)
	moved(billed, 3600)
	until(lambda: billed.post('/groups', json={'name': unique(), 'orgId': billed.org}).status_code == 200, what='the end of the lock')


def test_a_deleted_organization_is_billed(billed, cashier):
	"""What it had before, when its last month is over."""
	org, = billed.seed({'name': unique('gone'), 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	theirs = billed.api_for(org['principals'][0])
	group = ok(theirs.post('/groups', json={'name': unique(), 'orgId': org['id']}))['id']
	ok(theirs.post(path(group), json=body('short')), 201)
	pass_time(billed, lambda: state(theirs, group, 'short') == 'IDLE')
	moved(billed, 3600 * 5)
	ok(theirs.delete(path(group, 'short')), 202)
	pass_time(billed, lambda: theirs.get(path(group, 'short')).status_code == 404)
	assert theirs.delete('/groups/' + group).status_code == 204 and theirs.delete('/orgs/' + org['id']).status_code == 204
	moved(billed, next_month(billed) + 3600)
	hook = until(lambda: [r.json for r in cashier.taken if r.json['orgId'] == org['id']], what='the invoice')
	assert len(hook) == 1 and hook[0]['amountBilledCents'] > 0
