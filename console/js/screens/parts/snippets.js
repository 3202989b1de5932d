/* The lines that open a cluster from a program, in eight languages, each with the driver that most people use. What is pasted into code is
 * quoted as the language quotes texts; a password stands in the environment, never in a program. */

const hostsOf = text => text.split(',').map(h => {
	const at = h.lastIndexOf(':');
	return at > 0 ? [h.slice(0, at), h.slice(at + 1)] : [h, '5432'];
});

/* What a connection string says: [[host, port]], addresses, database, TLS and which node is wanted. */
export function parts(standard) {
	const at = /^\w+:\/\/([^/]+)\/([^?]*)\??(.*)$/.exec(standard) ?? [], query = new URLSearchParams(at[3] ?? '');
	return {hosts: hostsOf(at[1] ?? ''), addresses: (query.get('hostaddr') ?? '').split(',').filter(Boolean), database: at[2] || 'postgres',
		ssl: query.get('sslmode') ?? 'require', wanted: query.get('target_session_attrs') ?? ''};
}

const q1 = text => `'${String(text).replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`, q2 = text => JSON.stringify(String(text));
const sh = text => `'${String(text).replace(/'/g, `'\\''`)}'`;

/* Drivers that are made of libpq take its string; the others take the addresses of all nodes, or of the first. */
export function snippets(standard, user, password) {
	const p = parts(standard), hosts = p.hosts.map(h => h[0]), ports = p.hosts.map(h => h[1]), places = p.addresses.length === hosts.length ? p.addresses : hosts;
	const [place, port] = [places[0], ports[0]], pairs = places.map((h, i) => `${h}:${ports[i]}`).join(',');
	const url = standard.replace('://', `://${encodeURIComponent(user)}@`), env = `export PGPASSWORD=${sh(password || 'PASSWORD')}`;
	const ask = 'select version()';
	return {
		python: ['Python', `# pip install "psycopg[binary]"; with psycopg2 the same lines work\n# ${env}\ntry:\n    import psycopg\nexcept ImportError:\n    import psycopg2 as psycopg\n\nwith psycopg.connect(${q2(url)}) as connection:\n    with connection.cursor() as cursor:\n        cursor.execute(${q2(ask)})\n        print(cursor.fetchone()[0])\n`],
		node: ['JavaScript', `// npm install pg\n// ${env}\nimport pg from 'pg';\n\nconst client = new pg.Client({host: ${q1(place)}, port: ${port}, database: ${q1(p.database)}, user: ${q1(user)},\n  password: process.env.PGPASSWORD, ssl: {rejectUnauthorized: false, servername: ${q1(hosts[0])}}});\nawait client.connect();\nconsole.log((await client.query(${q1(ask)})).rows[0].version);\nawait client.end();\n`],
		go: ['Go', `// go get github.com/jackc/pgx/v5\n// ${env}\npackage main\n\nimport (\n\t"context"\n\t"fmt"\n\n\t"github.com/jackc/pgx/v5"\n)\n\nfunc main() {\n\tctx := context.Background()\n\tconn, err := pgx.Connect(ctx, ${q2(`host=${places.join(',')} port=${ports.join(',')} dbname=${p.database} user=${libpq(user)} sslmode=require${p.wanted && ` target_session_attrs=${p.wanted}`}`)})\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tdefer conn.Close(ctx)\n\tvar version string\n\tif err := conn.QueryRow(ctx, ${q2(ask)}).Scan(&version); err != nil {\n\t\tpanic(err)\n\t}\n\tfmt.Println(version)\n}\n`],
		java: ['Java', `// org.postgresql:postgresql\n// ${env}\nimport java.sql.DriverManager;\n\npublic class Hello {\n    public static void main(String[] args) throws Exception {\n        var url = ${q2(`jdbc:postgresql://${pairs}/${p.database}?sslmode=require${/read-write|primary/.test(p.wanted) ? '&targetServerType=primary' : ''}`)};\n        try (var connection = DriverManager.getConnection(url, ${q2(user)}, System.getenv("PGPASSWORD"));\n             var rows = connection.createStatement().executeQuery(${q2(ask)})) {\n            rows.next();\n            System.out.println(rows.getString(1));\n        }\n    }\n}\n`],
		csharp: ['C#', `// dotnet add package Npgsql\n// ${env}\nusing Npgsql;\n\nvar text = new NpgsqlConnectionStringBuilder {\n    Host = ${q2(pairs)}, Database = ${q2(p.database)}, Username = ${q2(user)},\n    Password = Environment.GetEnvironmentVariable("PGPASSWORD"), SslMode = SslMode.Require,\n};\nawait using var source = NpgsqlDataSource.Create(text);\nawait using var command = source.CreateCommand(${q2(ask)});\nConsole.WriteLine(await command.ExecuteScalarAsync());\n`],
		ruby: ['Ruby', `# gem install pg\n# ${env}\nrequire "pg"\n\nconnection = PG.connect(${q1(url)})\nputs connection.exec(${q1(ask)}).getvalue(0, 0)\nconnection.close\n`],
		php: ['PHP', `<?php\n// the extension pdo_pgsql\n// ${env}\n$connection = new PDO(${q1(`pgsql:host=${hosts.join(',')};${p.addresses.length ? `hostaddr=${p.addresses.join(',')};` : ''}port=${ports.join(',')};dbname=${p.database};sslmode=require`)}, ${q1(user)}, getenv('PGPASSWORD'));\necho $connection->query(${q1(ask)})->fetchColumn(), "\\n";\n`],
		rust: ['Rust', `// cargo add tokio --features full; cargo add sqlx --features postgres,runtime-tokio,tls-native-tls\n// ${env}\nuse sqlx::postgres::{PgConnectOptions, PgPool, PgSslMode};\n\n#[tokio::main]\nasync fn main() -> Result<(), sqlx::Error> {\n    let options = PgConnectOptions::new().host(${q2(place)}).port(${port}).database(${q2(p.database)}).username(${q2(user)})\n        .password(&std::env::var("PGPASSWORD").unwrap()).ssl_mode(PgSslMode::Require);\n    let pool = PgPool::connect_with(options).await?;\n    let (version,): (String,) = sqlx::query_as(${q2(ask)}).fetch_one(&pool).await?;\n    println!("{version}");\n    Ok(())\n}\n`]
	};
}

const libpq = text => /^[\w.-]+$/.test(text) ? text : `'${String(text).replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;
