/* What states mean, and which GET tells when a call's work is done. */
#include "cli/wait.h"

#include "base/json.h"
#include "catalog/catalog.h"

#include "check.h"

static bool state_is(const char *json, const char *state)
{
	json_t *document = json_loads(json, 0, NULL);
	bool same = strcmp(state_of_document(document), state) == 0;
	json_decref(document);
	return same;
}

static bool is_listed(const char *const *list, const char *state)
{
	for (; *list; list++)
		if (strcmp(*list, state) == 0)
			return true;
	return false;
}

static void test_states(void)
{
	CHECK(state_is("{\"stateName\":\"IDLE\",\"status\":\"x\"}", "IDLE"));
	CHECK(state_is("{\"status\":\"PENDING\"}", "PENDING") && state_is("{\"status\":5}", "") && state_is("{}", ""));
	CHECK(*state_of_document(NULL) == '\0');
	CHECK(state_is("{\"failed\":false,\"cancelled\":false}", "inProgress") &&
	      state_is("{\"failed\":false,\"finishedAt\":\"x\"}", "completed"));
	CHECK(state_is("{\"failed\":true,\"finishedAt\":\"x\"}", "failed") && is_listed(state_failed, "cancelled"));
	CHECK(state_is_moving("CREATING") && state_is_moving("inProgress") && !state_is_moving("IDLE"));
	CHECK(!state_is_moving("PENDING_ACCEPTANCE") && !state_is_moving(""));
	for (const char *const *state = state_moving; *state; state++)
		CHECK(!is_listed(state_failed, *state) && !is_listed(state_gone, *state));
}

static void test_polls(void)
{
	unsigned waits = 0;
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		if (!op->polls)
			continue;
		waits++;
		CHECK(op->polls->method == METHOD_GET && op->polls->polls == op->polls);
		/* What is deleted is waited for at its own path. */
		CHECK(op->method != METHOD_DELETE || strcmp(op->path, op->polls->path) == 0);
	}
	CHECK(waits > 100);
	CHECK(strcmp(catalog_op("takeSnapshots")->polls->id, "getClusterBackupSnapshot") == 0);
	CHECK(strcmp(catalog_op("createBackupRestoreJob")->polls->id, "getBackupRestoreJob") == 0);
	CHECK(strcmp(catalog_op("requestSampleDatasetLoad")->polls->id, "getSampleDatasetLoad") == 0);
	CHECK(strcmp(catalog_op("restartPrimaries")->polls->id, "getCluster") == 0);
	CHECK(!catalog_op("createDatabaseUser")->polls && !catalog_op("listClusters")->polls);
}

int main(void)
{
	json_setup();
	test_states();
	test_polls();
	return CHECK_DONE();
}
