/* Requests in the forms of vendors, as far as no receiver of the API tests sees them. */
#include "outbox/vendors.h"

#include "base/json.h"
#include "check.h"

static struct notice notice_make(struct arena *a)
{
	json_t *details = json_keep(a, json_pack("{s:s, s:s, s:i}", "clusterName", "c0", "text", "\"quoted\"", "n", 7));
	return (struct notice){.id = STR("5f0000000000000000000001"),
	                       .kind = NOTICE_OPEN,
	                       .title = STR("Host down"),
	                       .text = STR("Host down\n"),
	                       .source = STR("c0"),
	                       .severity = "WARNING",
	                       .at_ms = 1767323045000,
	                       .details = details};
}

static void test_new_relic(void)
{
	struct arena *a = arena_new();
	const struct notice n = notice_make(a);
	json_t *receiver = json_keep(
	        a, json_pack("{s:s, s:s, s:s}", "typeName", "NEW_RELIC", "accountId", "12/3", "licenseKey", "eu01xx"));
	json_t *request = vendor_request(a, receiver, &n);
	CHECK(str_is(json_field(request, "endpoint"), "newrelic-eu"));
	CHECK(str_is(json_field(request, "path"), "/v1/accounts/12%2F3/events"));
	CHECK(str_is(json_field(json_object_get(request, "headers"), "Api-Key"), "eu01xx"));
	json_t *body = doc_json(a, json_field(request, "body"));
	const json_t *event = json_array_get(body, 0);
	CHECK(json_array_size(body) == 1 && str_is(json_field(event, "eventType"), "StewardAlert"));
	CHECK(str_is(json_field(event, "alertId"), "5f0000000000000000000001") &&
	      str_is(json_field(event, "state"), "open"));
	CHECK(json_number(event, "timestamp") == 1767323045);
	json_put_z(receiver, "licenseKey", "us");
	CHECK(str_is(json_field(vendor_request(a, receiver, &n), "endpoint"), "newrelic"));
	json_put_z(receiver, "typeName", "NOBODY");
	CHECK(!vendor_request(a, receiver, &n));
	arena_free(a);
}

/* A small template that repeats a field does not become a large message. */
static void test_templates_are_bounded(void)
{
	struct arena *a = arena_new();
	struct notice n = notice_make(a);
	char *template = arena_calloc(a, 16001, 1), *value = arena_calloc(a, 4001, 1);
	for (size_t i = 0; i < 16000; i += 5)
		memcpy(template + i, "{{v}}", 5);
	memset(value, 'x', 4000);
	json_put_z((json_t *)(uintptr_t)n.details, "v", value);
	json_t *receiver = json_keep(a, json_pack("{s:s, s:s, s:s}", "typeName", "WEBHOOK", "webhookUrl",
	                                          "https://example.com/#events=X", "webhookBodyTemplate", template));
	json_t *request = vendor_request(a, receiver, &n);
	CHECK(json_field(request, "body").n >= 32768 && json_field(request, "body").n < 37000);
	CHECK(str_is(json_field(request, "url"), "https://example.com/"));
	json_put_z(receiver, "webhookBodyTemplate", "{{text}} {{ n }} {{nothing}} {{");
	CHECK(str_is(json_field(vendor_request(a, receiver, &n), "body"), "\\\"quoted\\\" 7  {{"));
	arena_free(a);
}

/* Cut between characters, not within one. */
static void test_long_titles(void)
{
	struct arena *a = arena_new();
	struct notice n = notice_make(a);
	char title[401] = "";
	for (size_t i = 0; i < 400; i += 2)
		memcpy(title + i, "\xc3\xa9", 2);
	n.title = arena_printf(a, "x%s", title);
	json_t *receiver = json_keep(a, json_pack("{s:s, s:s}", "typeName", "OPS_GENIE", "opsGenieApiKey", "k"));
	json_t *body = doc_json(a, json_field(vendor_request(a, receiver, &n), "body"));
	CHECK(json_field(body, "message").n == 129);
	body = doc_json(a, json_field(sms_request(a, STR("+1"), &n), "body"));
	CHECK(json_field(body, "text").n == 299 && str_is(json_field(body, "to"), "+1"));
	arena_free(a);
}

int main(void)
{
	test_new_relic();
	test_templates_are_bounded();
	test_long_titles();
	return CHECK_DONE();
}
