"""Clusters of more than one set on real databases: a router in front of shards."""
import os, signal

import psycopg2, pytest

import databases
from client import ok
from databases import allow, region, until, working_in

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')


def shards(count):
	"""The first has standbys, to which it can fail over. That the others have none changes nothing of what is looked at, and each server
	less need not be started, stopped and started again."""
	return {'clusterType': 'SHARDED', 'replicationSpecs': [{'regionConfigs': [region(1 if n else 3)]} for n in range(count)]}


def test_sharded(site):
	s = site(clock='virtual')
	allow(s.start())
	c = s.cluster('sharded', **shards(2)).settled()
	strings = ok(c.server.get(c.path))['connectionStrings']
	assert 'router' in strings['standard'] and len(c.nodes()) == 5
	router = next(n for n in c.nodes() if 'router' in n)
	c.ask('create table orders(id int, customer int not null, note text default $$none$$, primary key (id, customer))')
	assert c.ask("select steward.shard_table('orders', 'customer')") == [(2,)]
	c.ask('insert into orders select n, n % 100 from generate_series(1, 1000) n')
	assert c.ask('select count(*), min(note), count(distinct customer) from orders') == [(1000, 'none', 100)]
	assert c.ask('select count(*) from orders where customer = 7') == [(10,)]
	shares = [int(n) for n, in c.ask('select count(*) from orders group by tableoid')]
	assert len(shares) == 2 and min(shares) > 200, shares
	c.ask('update orders set note = $$x$$ where customer = 7')
	c.ask('delete from orders where customer = 8')
	assert c.ask("select count(*) filter (where note = 'x'), count(*) from orders") == [(10, 990)]
	with pytest.raises(psycopg2.errors.UniqueViolation):
		c.ask('insert into orders values (7, 7)')
	# a user gets to the shards through the tables only
	for evil in ("create foreign table peek(rolname name) server shard_0 options (schema_name 'pg_catalog', table_name 'pg_authid')",
		     "select steward_parts.dblink_exec('shard_0', 'drop schema sharded cascade')",
		     "alter server shard_0 options (set dbname 'template1')",
		     "create user mapping for current_user server shard_0 options (user 'steward_engine')"):
		with pytest.raises(psycopg2.Error):
			c.ask(evil)
	c.ask('create table full_one(a int); insert into full_one values (1)')
	with pytest.raises(psycopg2.Error, match='must be empty'):
		c.ask("select steward.shard_table('full_one', 'a')")
	# a shard's failover is none of the clients' concern
	os.kill(c.pid(c.primary(0)), signal.SIGKILL)

	def again():
		try:
			return c.ask('select count(*) from orders') == [(990,)]
		except psycopg2.Error:
			return False
	until(again, 60, 'the shard')
	# a third shard serves new tables; the old ones stay where they are
	c.change(replicationSpecs=shards(3)['replicationSpecs'])
	c.settled()
	c.ask('create table more(a int)')
	assert c.ask("select steward.shard_table('more', 'a')") == [(3,)]
	assert c.ask('select count(*) from orders') == [(990,)]
	c.ask('drop table orders')
	# a shard that holds data does not go
	c.change(replicationSpecs=shards(2)['replicationSpecs'])
	c.settled(at='REPAIRING')
	assert 'holds parts of 1 tables' in c.why() and c.ask('select count(*) from more') == [(0,)]
	# nor when the router sleeps as the change comes
	c.change(replicationSpecs=shards(3)['replicationSpecs'])
	c.settled()
	c.ask('insert into more select generate_series(1, 99)')
	c.change(paused=True)
	until(lambda: not working_in(s.data / 'engine' / c.id), 180, 'the pause')
	c.settled()
	c.change(paused=False, replicationSpecs=shards(2)['replicationSpecs'])
	c.settled(at='REPAIRING')
	assert 'holds parts of 1 tables' in c.why(), c.why()
	c.change(paused=False, replicationSpecs=shards(3)['replicationSpecs'])
	c.settled()
	assert c.ask('select count(*) from more') == [(99,)]
	c.delete()
	c.deleted()
