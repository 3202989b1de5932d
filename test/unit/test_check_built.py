"""script/check-built: prose that calls what is built unbuilt is found, and other prose is let be. And claims of the documentation that data
or tests can be held against."""
import json
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
script = runpy.run_path(str(ROOT / "script/check-built"))


def family(title, handler, *paths):
	return {"title": title, "operations": [{"operationId": "op%s%d" % (title[:3], i), "path": path, "handler": handler} for i, path in enumerate(paths)]}


built = script["Built"]([
	family("Alerts", "create", "/groups/{groupId}/alertConfigs", "/groups/{groupId}/alerts/{alertId}"),
	family("Billing", "invoices_list", "/orgs/{orgId}/invoices"),
	family("Clusters", "create", "/groups/{groupId}/clusters"),
	family("Cloud provider access", "get", "/groups/{groupId}/cloudProviderAccess"),
	family("Federation", "get", "/federationSettings/{id}"),
	family("Data federation", "unbuilt", "/groups/{groupId}/dataFederation"),
	family("Online archives", "unbuilt", "/groups/{groupId}/clusters/{clusterName}/onlineArchives"),
])


def found(text, name="docs/page.md"):
	return [int(line.split(":")[1]) for line in script["faults"](built, name, text)]


@pytest.mark.parametrize("text", [
	"- **Alerts** of backups: alert configurations answer 501.",
	"- Use what is not built: a 501. These families are not: online archives,\n  billing, data federation.",
	"| `cloudProviderAccess`, `atlasSearch` | not built |",
	"| `cloudProviders accessRoles` | not built: 501 |",
	"`opBil0` is not implemented.",
	"Alert configs are NOT BUILT yet.",
	"Federation is not yet built.",
])
def test_what_is_wrong_is_found(text):
	assert found("A page.\n\n" + text + "\n") == [3]


@pytest.mark.parametrize("text", [
	"Data federation and online archives of a cluster are not built: 501.",
	"Alerts work. Of clusters, online archives answer 501.",
	"Alerts are built; a 501 (`NOT_IMPLEMENTED`) is no outage.",
	"These families are built; the others answer 501 after every gate:\n\n| Alerts | 2 of 2 |",
	"| `federated_database_instance`, `online_archive` | not built: 501 |",
	"An answer to alerts of 15010 bytes.",
	"```\nalerts: 501\n```",
])
def test_what_is_right_is_let_be(text):
	assert found(text) == []


def test_texts_of_the_data():
	assert found(json.dumps({"description": "Lists alerts.", "more": ["Billing is not built."]}), "api/x.json") == [1]


def test_this_tree():
	assert script["main"]([]) == 0


def test_clients_that_run():
	"""README names those that run, and those that do not, as docs/clients.md has them; and those have tests."""
	rows = re.findall(r"^\| (.+?) \| \[clients/.+?\) \| (.+?) \|$", (ROOT / "docs/clients.md").read_text(), re.MULTILINE)
	runs = [name for name, how in rows if how.startswith("runs in `script/test`")]
	others = [name for name, how in rows if how == "from its source; not run"]
	assert len(runs) == 3 and len(others) == 4 and len(rows) == 7
	said = re.search(r"existing clients, unmodified: (.*?), which\s+the tests run; (.*?), which they do not$", (ROOT / "README.md").read_text(),
		re.MULTILINE | re.DOTALL)
	named = {"`mongodb-mcp-server`, for assistants": "MCP server", "`mongodb-atlas-api-client`, JavaScript": "JavaScript", "Python: `requests`, `requests-oauthlib`": "requests",
		"Python: `atlasapi`": "atlasapi", "`atlas-sdk-go`, Go": "Go", "`terraform-provider-mongodbatlas`": "Terraform", "`atlas`, the command-line client": "`atlas` CLI"}
	assert all(named[name] in said.group(1) and named[name] not in said.group(2) for name in runs)
	assert all(named[name] in said.group(2) and named[name] not in said.group(1) for name in others)
	tests = {"test_mcp_server.py": "mongodb-mcp-server", "test_api_client.py": "mongodb-atlas-api-client", "test_python.py": "requests_oauthlib"}
	for file, word in tests.items():
		assert word in (ROOT / "test/clients" / file).read_text() + (ROOT / "test/clients/package.json").read_text(), file


# What docs/alerts.md says that nothing raises: names of such events, and those of the same kind that something does raise.
SILENT = {"application services": "DEPLOYMENT_FAILURE|URL_CONFIRMATION|SUCCESSFUL_DEPLOY|REQUEST_RATE_LIMIT|LOG_FORWARDER_FAILURE|SYNC_FAILURE|TRIGGER_(?:AUTO_RESUMED|FAILURE)",
	"serverless instances": "OUTSIDE_SERVERLESS_METRIC_THRESHOLD", "billing": "CREDIT_CARD_ABOUT_TO_EXPIRE|PENDING_INVOICE_OVER_THRESHOLD|DAILY_BILL_OVER_THRESHOLD",
	"the age of encryption keys": r"\w+_ENCRYPTION_KEY_NEEDS_ROTATION", "streams": r"\w*STREAM_PROCESSOR\w*",
	"autoscaling": r"(?:COMPUTE_|DISK_)?AUTO_SCAL(?:E|ING)_\w+", "MFA": r"USERS_WITHOUT_MULTI_?FACTOR_AUTH", "expiration checks of certificates": r"NDS_X509_\w+_EXPIRATION_CHECK"}
TOLD = {r"%s_ENCRYPTION_KEY_%s": "src/api/encryption_at_rest", "PUSH_BASED_LOG_EXPORT_STOPPED": "src", "CPS_SNAPSHOT_FAILED": "src", "CPS_SNAPSHOT_BEHIND": "src"}


def test_alerts_that_nothing_raises():
	section = (ROOT / "docs/alerts.md").read_text().split("## What nothing here raises")[1]
	sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.c") if "api/alerts" not in str(path)}
	for words, names in SILENT.items():
		assert words in section.split("(")[0].replace("\n", " "), words
		assert [str(path) for path, text in sources.items() if re.search('"(?:%s)"' % names, text)] == [], words
	for name, folder in TOLD.items():
		assert any(name in text for path, text in sources.items() if str(path).startswith(str(ROOT / folder))), name
