// Runs mongodb-atlas-api-client: a line {"call": ["cluster", "get"], "with": ["name"]} is answered by a line {"value": what it
// returned} or {"thrown": message}; a line {"functions": true} by the names of all that it has.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [where, baseUrl, publicKey, privateKey, projectId] = process.argv.slice(2);
const client = createRequire(where + "/")(where)({ baseUrl, publicKey, privateKey, projectId });

for await (const line of createInterface({ input: process.stdin })) {
	const asked = JSON.parse(line);
	let answer;
	if (asked.functions) {
		answer = { value: Object.entries(client).flatMap(([thing, all]) => Object.keys(all).map((name) => `${thing}.${name}`)) };
	} else {
		const [thing, name] = asked.call;
		try {
			answer = { value: (await client[thing][name](...asked.with)) ?? null };
		} catch (error) {
			answer = { thrown: String(error) };
		}
	}
	process.stdout.write(JSON.stringify(answer) + "\n");
}
