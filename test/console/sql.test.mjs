/* The SQL editor's endpoint under attack, on real PostgreSQL: it gives nobody more than psql would, and nothing that is sent or answered takes
 * the service down. */
import assert from 'node:assert/strict';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {after, test} from 'node:test';
import {start, newPage, signIn, until, LONG} from './harness.mjs';

const installed = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length > 0;
const PASSWORD = 'sixteen letters or so', SECRET = 'statement-that-is-in-no-log';

if (!installed)
	test('the SQL editor', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const server = await start({engine: 'postgres'});
	after(() => server.stop());
	const {groupId} = server;
	let page = null;
	const ask = (more, method = 'POST') => page.evaluate(async ([m, b]) => {
		const answer = await fetch('/api/session/sql', {method: m, headers: {'Content-Type': 'application/json'}, body: m === 'GET' ? undefined : JSON.stringify(b)});
		return {status: answer.status, body: await answer.json().catch(() => null)};
	}, [method, {groupId, clusterName: 'orders', username: 'ada', password: PASSWORD, database: 'postgres', ...more}]);
	const write = statement => ask({statement, write: true});
	const ok = async (more, what) => {
		const a = await ask(more);
		assert.equal(a.status, 200, `${what ?? more.statement}: ${JSON.stringify(a.body).slice(0, 300)}`);
		return a.body;
	};

	test('prepared', {timeout: 5 * LONG}, async () => {
		await server.api('POST', `/groups/${groupId}/clusters`, {name: 'orders', clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1',
			priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 1}}]}]});
		await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders`)).stateName === 'IDLE', 3 * LONG);
		for (const [username, roleName] of [['ada', 'readWriteAnyDatabase'], ['eve', 'readAnyDatabase']])
			await server.api('POST', `/groups/${groupId}/databaseUsers`, {groupId, databaseName: 'admin', username, password: PASSWORD, roles: [{roleName, databaseName: 'admin'}]});
		page = await newPage(server);
		await signIn(page);
	});

	test('the address has to be on the access list', async () => {
		const a = await ask({statement: 'select 1'});
		assert.deepEqual([a.status, a.body.errorCode], [403, 'ADDRESS_NOT_ON_ACCESS_LIST']);
		await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '127.0.0.1'}]);
		await until('the list is in force', async () => (await ask({statement: 'select 1'})).status === 200);
	});

	test('to read changes nothing, whatever is typed', async () => {
		assert.equal((await write('create table t (a int); insert into t values (1)')).body.error, undefined);
		for (const statement of ['delete from t', 'commit; delete from t', 'rollback; delete from t; begin', 'set transaction read write; delete from t', "select 1; delete from t", 'end; drop table t',
			"do $$ begin delete from t; end $$", 'with d as (delete from t returning *) select * from d', "select nextval('t_s')", 'truncate t', 'create table u (a int)',
			"select set_config('transaction_read_only', 'off', false) from (select 1) x; delete from t", "explain analyze delete from t", 'prepare transaction $$x$$', "copy t from program 'id'"])
			assert.ok((await ok({statement})).error, `${statement} was let through`);
		for (const statement of ['commit', 'set transaction read write', 'set default_transaction_read_only = off', "select set_config('transaction_read_only', 'off', false)"])
			await ask({statement});
		assert.equal((await ok({statement: 'select count(*) from t'})).results[0].rows[0][0], '1');
	});

	test('the database user\'s rights are all there is', async () => {
		for (const statement of ['delete from t', 'set role steward', 'set session authorization postgres', "copy (select 1) to '/tmp/x'", "copy t from program 'id'", "select pg_read_file('/etc/passwd')",
			"select lo_import('/etc/passwd')", 'create extension dblink', 'alter system set shared_buffers = 1', "load '/tmp/x.so'", 'alter role eve superuser', "select * from pg_authid"]) {
			const {error} = await ok({username: 'eve', statement, write: true});
			assert.ok(error, `eve may ${statement}`);
		}
		assert.match((await ok({username: 'eve', statement: 'select current_user, session_user, inet_client_addr()'})).results[0].rows[0].join(), /^eve,eve/);
	});

	test('neither names nor settings of a connection can be smuggled in', async () => {
		for (const database of ['postgres host=127.0.0.1 user=steward', "postgres' user='steward", 'postgresql://steward@/postgres', '-c role=steward', '../x', 'x'.repeat(1000)])
			assert.equal((await ask({statement: 'select 1', database})).status, 409, database);
		/* The first two are the service's own roles: the server lets in who runs as the service's user, without a password. */
		for (const username of ['steward_engine', 'steward:shard', 'steward', 'postgres', 'ada options=-csuper', 'ADA', ' ada', 'nobody'])
			assert.equal((await ask({statement: 'select 1', username})).status, 403, username);
		assert.equal((await ask({statement: 'select 1', password: ''})).status, 400);
		assert.equal((await ask({statement: 'select 1\u0000; x'})).status, 400);
		assert.equal((await ask({statement: 7})).status, 400);
		assert.equal((await ask({statement: `select '${'x'.repeat(150000)}'`})).status, 400);
		assert.equal((await ask({statement: 'select 1'}, 'GET')).status, 405);
	});

	test('a wrong password is told from a connection that fails otherwise', {timeout: LONG}, async () => {
		const refusal = async more => {
			const a = await ask({statement: 'select 1', ...more});
			return [a.status, a.body.errorCode, a.body.detail];
		};
		assert.deepEqual(await refusal({password: 'wrong'}), [403, 'DATABASE_LOGIN_REFUSED', 'The database says: password authentication failed for user "ada".']);
		assert.deepEqual(await refusal({username: 'nobody'}), [403, 'DATABASE_LOGIN_REFUSED', 'The database says: password authentication failed for user "nobody".']);
		assert.deepEqual(await refusal({database: 'shop'}), [409, 'DATABASE_CONNECTION_FAILED', 'The database says: database "shop" does not exist.']);
		/* Names that are mistyped are no guesses at a password. */
		for (let i = 0; i < 25; i++)
			assert.equal((await refusal({database: `shop${i}`}))[0], 409, String(i));
		/* What the server says does not depend on the words: a name that looks like the beginning of its message. */
		assert.equal((await refusal({database: 'FATAL:  28P01: x'}))[0], 409);
	});

	test('answers are bounded, and the service lives', {timeout: 5 * LONG}, async () => {
		const many = (await ok({statement: 'select generate_series(1, 100000000)'})).results[0];
		assert.deepEqual([many.rows.length, many.more], [1000, true]);
		const long = (await ok({statement: "select repeat('é', 20000)"})).results[0];
		assert.ok(long.rows[0][0].length <= 10000 && long.cut);
		assert.ok((await ok({statement: "select repeat('x', 9000) from generate_series(1, 5000)"})).results[0].rows.length < 200);
		const huge = await ask({statement: "select repeat('x', 1000000000)"});
		assert.ok(huge.status === 504 || huge.body.error, JSON.stringify(huge.body).slice(0, 200));
		assert.ok((await ok({statement: `select ${Array.from({length: 1600}, (_, i) => i).join()}`})).results[0].columns.length <= 400);
		assert.ok((await write(Array.from({length: 200}, (_, i) => `select ${i}`).join(';'))).body.results.length <= 20);
		for (const statement of ['copy t to stdout', 'copy t from stdin', 'begin', 'listen x; notify x', '', ';', '--', "select E'\\x80'", 'select $1', '\\! id', "do $$ begin for i in 1..1000 loop raise notice '%', repeat('n', 9000); end loop; end $$"])
			assert.ok([200, 400].includes((await ask({statement: statement || ' ', write: true})).status), statement);
		assert.ok((await write('begin; delete from t')).body.open, 'an open transaction is told');
		assert.equal((await ok({statement: 'select count(*) from t'})).results[0].rows[0][0], '1');
		/* Writes are done to their end, however much they give back. */
		assert.ok((await write('insert into t select generate_series(1, 5000) returning a')).body.results[0].more);
		assert.equal((await ok({statement: 'select count(*) from t'})).results[0].rows[0][0], '5001');
		const slow = await Promise.all(Array.from({length: 12}, () => ask({statement: 'select pg_sleep(2), 1'})));
		assert.ok(slow.every(a => [200, 503].includes(a.status)), slow.map(a => a.status).join());
		assert.equal((await server.ask('GET', '/healthz')).status, 200);
	});

	test('others, strangers and pages of others get nothing', async () => {
		const other = await server.api('POST', '/groups', {name: 'other', orgId: server.orgId});
		assert.equal((await ask({statement: 'select 1', groupId: other.id})).status, 404, 'a cluster of another project');
		assert.equal((await ask({statement: 'select 1', groupId: 'f'.repeat(24)})).status, 404);
		const body = {groupId, clusterName: 'orders', username: 'ada', password: PASSWORD, database: 'postgres', statement: 'select 1'};
		assert.equal((await server.ask('POST', '/api/session/sql', {body})).status, 401);
		const cookie = (await page.context().cookies()).map(c => `${c.name}=${c.value}`).join('; ');
		for (const site of ['cross-site', 'same-site', 'none'])
			assert.ok([401, 403].includes((await server.ask('POST', '/api/session/sql', {body, headers: {cookie, 'sec-fetch-site': site}})).status), site);
	});

	test('what is under way ends when a right is taken away', {timeout: LONG}, async () => {
		await server.api('POST', `/groups/${groupId}/databaseUsers`, {groupId, databaseName: 'admin', username: 'tom', password: PASSWORD, roles: [{roleName: 'readAnyDatabase', databaseName: 'admin'}]});
		const under = ask({username: 'tom', statement: 'select pg_sleep(25)', write: true});
		await until('it runs', async () => (await ok({statement: "select count(*) from pg_stat_activity where usename = 'tom'"})).results[0].rows[0][0] === '1');
		await server.api('PATCH', `/groups/${groupId}/databaseUsers/admin/tom`, {roles: [{roleName: 'read', databaseName: 'other'}]});
		const {status, body} = await under;
		assert.ok(status !== 200 || body.error, JSON.stringify(body).slice(0, 300));
	});

	test('neither password nor statement is written down by the service; guesses run into a wall', async () => {
		await ok({statement: `select '${SECRET}'`});
		const stored = readdirSync(server.data, {recursive: true, withFileTypes: true}).filter(f => f.isFile() && !/engine/.test(f.parentPath ?? f.path)).map(f => `${f.parentPath ?? f.path}/${f.name}`);
		for (const text of [server.output, ...stored.map(f => readFileSync(f, 'latin1'))])
			assert.ok(!text.includes(SECRET) && !text.includes(PASSWORD), 'it was written down');
		const statuses = [];
		for (let i = 0; i < 40 && statuses.at(-1) !== 429; i++)
			statuses.push((await ask({statement: 'select 1', username: 'eve', password: `wrong ${i}`})).status);
		assert.equal(statuses.at(-1), 429, statuses.join());
		await page.context().close();
	});
}
