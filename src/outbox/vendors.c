/* Each vendor is a function that makes a request of a notice: {"endpoint", "path", "headers", "body"}, or {"url", ...}
 * where the receiver is a tenant's own. The address of an endpoint is looked up when it is sent. */
#include "outbox/vendors.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define SUMMARY_MAX 1000
#define OPSGENIE_MAX 130 /* of a message */
#define SMS_MAX 300
#define TEMPLATE_VALUE_MAX 4096
#define TEMPLATE_FILLED_MAX 32768

const struct vendor_endpoint vendor_endpoints[] = {{"slack", "https://slack.com"},
                                                   {"pagerduty", "https://events.pagerduty.com"},
                                                   {"pagerduty-eu", "https://events.eu.pagerduty.com"},
                                                   {"opsgenie", "https://api.opsgenie.com"},
                                                   {"opsgenie-eu", "https://api.eu.opsgenie.com"},
                                                   {"victorops", "https://alert.victorops.com"},
                                                   {"datadog", "https://api.datadoghq.com"},
                                                   {"datadog-eu", "https://api.datadoghq.eu"},
                                                   {"datadog-us3", "https://api.us3.datadoghq.com"},
                                                   {"datadog-us5", "https://api.us5.datadoghq.com"},
                                                   {"datadog-ap1", "https://api.ap1.datadoghq.com"},
                                                   {"datadog-us1_fed", "https://api.ddog-gov.com"},
                                                   {"datadog-logs-us1", "https://http-intake.logs.datadoghq.com"},
                                                   {"datadog-logs-us3", "https://http-intake.logs.us3.datadoghq.com"},
                                                   {"datadog-logs-us5", "https://http-intake.logs.us5.datadoghq.com"},
                                                   {"datadog-logs-eu", "https://http-intake.logs.datadoghq.eu"},
                                                   {"datadog-logs-ap1", "https://http-intake.logs.ap1.datadoghq.com"},
                                                   {"datadog-logs-ap2", "https://http-intake.logs.ap2.datadoghq.com"},
                                                   {"datadog-logs-us1_fed", "https://http-intake.logs.ddog-gov.com"},
                                                   {"newrelic", "https://insights-collector.newrelic.com"},
                                                   {"newrelic-eu", "https://insights-collector.eu01.nr-data.net"},
                                                   {"sms", NULL},
                                                   {"billing", NULL},
                                                   {NULL, NULL}};

static json_t *text_json(struct str text)
{
	return json_stringn(text.p ? text.p : "", text.n);
}

/* Its beginning, which ends with a whole character. */
static struct str text_cut(struct str text, size_t most)
{
	if (text.n <= most)
		return text;
	while (most && ((unsigned char)text.p[most] & 0xc0) == 0x80)
		most--;
	return (struct str){text.p, most};
}

/* The request of a JSON body; takes it. */
static json_t *request_of(struct arena *a, json_t *body)
{
	json_t *request = json_new(a);
	json_keep(a, body);
	json_put(request, "headers", json_pack("{s:s}", "Content-Type", "application/json"));
	json_put_str(request, "body", json_text(a, body));
	return request;
}

static void header_put(json_t *request, const char *name, struct str value)
{
	json_put_str(json_object_get(request, "headers"), name, value);
}

/* "datadog-eu" of the region EU; the first region needs no name. */
static void endpoint_put(struct arena *a, json_t *request, const char *name, struct str region, const char *path)
{
	bool plain = !region.n || str_is(region, "US");
	struct str lower = arena_lower(a, region);
	struct str endpoint = plain ? str_of(name) : arena_printf(a, "%s-%.*s", name, STR_ARG(lower));
	json_put_str(request, "endpoint", endpoint);
	json_put_z(request, "path", path);
}

/* A text as one part of a path. */
static struct str path_part(struct arena *a, struct str text)
{
	struct buf b = {0};
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		if (isalnum(c) || c == '-' || c == '_' || c == '~')
			buf_c(&b, (char)c);
		else
			buf_printf(&b, "%%%02X", c);
	}
	return buf_keep(&b, a);
}

static json_t *slack(struct arena *a, const json_t *receiver, const struct notice *n)
{
	json_t *request = request_of(
	        a, json_pack("{s:o, s:o}", "channel", text_json(json_field(receiver, "channelName")), "text",
	                     text_json(arena_printf(a, "*%.*s*\n%.*s", STR_ARG(n->title), STR_ARG(n->text)))));
	endpoint_put(a, request, "slack", STR_NONE, "/api/chat.postMessage");
	header_put(request, "Content-Type", STR("application/json; charset=utf-8"));
	header_put(request, "Authorization", arena_printf(a, "Bearer %.*s", STR_ARG(json_field(receiver, "apiToken"))));
	json_put(request, "saysOk", json_true());
	return request;
}

static json_t *teams(struct arena *a, const json_t *receiver, const struct notice *n)
{
	json_t *card =
	        json_pack("{s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:b, s:o}, {s:s, s:b, s:o}]}", "$schema",
	                  "http://adaptivecards.io/schemas/adaptive-card.json", "type", "AdaptiveCard", "version",
	                  "1.2", "body", "type", "TextBlock", "size", "Medium", "weight", "Bolder", "wrap", 1, "text",
	                  text_json(n->title), "type", "TextBlock", "wrap", 1, "text", text_json(n->text));
	json_t *request =
	        request_of(a, json_pack("{s:s, s:[{s:s, s:o}]}", "type", "message", "attachments", "contentType",
	                                "application/vnd.microsoft.card.adaptive", "content", card));
	json_put_str(request, "url", json_field(receiver, "microsoftTeamsWebhookUrl"));
	return request;
}

static const char *pagerduty_severity(const char *severity)
{
	return strcmp(severity, "CRITICAL") == 0  ? "critical"
	       : strcmp(severity, "ERROR") == 0   ? "error"
	       : strcmp(severity, "WARNING") == 0 ? "warning"
	                                          : "info";
}

static json_t *pagerduty(struct arena *a, const json_t *receiver, const struct notice *n)
{
	char at[CLOCK_TEXT];
	struct str summary = text_cut(n->title, SUMMARY_MAX);
	clock_format(n->at_ms, at);
	json_t *payload =
	        json_pack("{s:o, s:o, s:s, s:s, s:O}", "summary", text_json(summary), "source", text_json(n->source),
	                  "severity", pagerduty_severity(n->severity), "timestamp", at, "custom_details", n->details);
	json_t *request = request_of(a, json_pack("{s:o, s:s, s:o, s:s, s:o}", "routing_key",
	                                          text_json(json_field(receiver, "serviceKey")), "event_action",
	                                          n->kind == NOTICE_CLOSED ? "resolve" : "trigger", "dedup_key",
	                                          text_json(n->id), "client", "Steward", "payload", payload));
	endpoint_put(a, request, "pagerduty", json_field(receiver, "region"), "/v2/enqueue");
	return request;
}

static json_t *opsgenie(struct arena *a, const json_t *receiver, const struct notice *n)
{
	struct str title = text_cut(n->title, OPSGENIE_MAX);
	json_t *request;
	if (n->kind == NOTICE_CLOSED)
		request = request_of(a, json_pack("{s:s, s:o}", "source", "Steward", "note", text_json(n->text)));
	else
		request = request_of(a,
		                     json_pack("{s:o, s:o, s:o, s:s, s:s, s:o}", "message", text_json(title), "alias",
		                               text_json(n->id), "description", text_json(n->text), "source", "Steward",
		                               "priority", strcmp(n->severity, "CRITICAL") == 0 ? "P1" : "P3", "entity",
		                               text_json(n->source)));
	endpoint_put(a, request, "opsgenie", json_field(receiver, "opsGenieRegion"),
	             n->kind == NOTICE_CLOSED
	                     ? arena_printf(a, "/v2/alerts/%.*s/close?identifierType=alias", STR_ARG(n->id)).p
	                     : "/v2/alerts");
	header_put(request, "Authorization",
	           arena_printf(a, "GenieKey %.*s", STR_ARG(json_field(receiver, "opsGenieApiKey"))));
	return request;
}

static json_t *victorops(struct arena *a, const json_t *receiver, const struct notice *n)
{
	const char *type = n->kind == NOTICE_CLOSED              ? "RECOVERY"
	                   : n->kind == NOTICE_INFORMATION       ? "INFO"
	                   : strcmp(n->severity, "WARNING") == 0 ? "WARNING"
	                                                         : "CRITICAL";
	json_t *request = request_of(a, json_pack("{s:s, s:o, s:o, s:o, s:I, s:s}", "message_type", type, "entity_id",
	                                          text_json(n->id), "entity_display_name", text_json(n->title),
	                                          "state_message", text_json(n->text), "state_start_time",
	                                          (json_int_t)(n->at_ms / 1000), "monitoring_tool", "Steward"));
	struct str given = json_field(receiver, "victorOpsRoutingKey");
	struct str key = path_part(a, json_field(receiver, "victorOpsApiKey"));
	struct str route = path_part(a, given.n ? given : STR("everyone"));
	endpoint_put(a, request, "victorops", STR_NONE,
	             arena_printf(a, "/integrations/generic/20131114/alert/%.*s/%.*s", STR_ARG(key), STR_ARG(route)).p);
	return request;
}

static json_t *datadog(struct arena *a, const json_t *receiver, const struct notice *n)
{
	const char *type = n->kind == NOTICE_CLOSED              ? "success"
	                   : n->kind == NOTICE_INFORMATION       ? "info"
	                   : strcmp(n->severity, "WARNING") == 0 ? "warning"
	                                                         : "error";
	json_t *request = request_of(a, json_pack("{s:o, s:o, s:s, s:o, s:I, s:o, s:[s]}", "title", text_json(n->title),
	                                          "text", text_json(n->text), "alert_type", type, "aggregation_key",
	                                          text_json(n->id), "date_happened", (json_int_t)(n->at_ms / 1000),
	                                          "host", text_json(n->source), "tags", "source:steward"));
	endpoint_put(a, request, "datadog", json_field(receiver, "datadogRegion"), "/api/v1/events");
	header_put(request, "DD-API-KEY", json_field(receiver, "datadogApiKey"));
	return request;
}

/* An event of a type of its own, by its Event API. Keys of accounts in Europe begin with "eu". */
static json_t *new_relic(struct arena *a, const json_t *receiver, const struct notice *n)
{
	static const char *const states[] = {[NOTICE_OPEN] = "open",
	                                     [NOTICE_CLOSED] = "closed",
	                                     [NOTICE_INFORMATION] = "event",
	                                     [NOTICE_EVENT] = "event"};
	struct str key = json_field(receiver, "licenseKey");
	json_t *request = request_of(
	        a, json_pack("[{s:s, s:o, s:s, s:o, s:o, s:o, s:s, s:I}]", "eventType", "StewardAlert", "alertId",
	                     text_json(n->id), "state", states[n->kind], "title", text_json(n->title), "text",
	                     text_json(text_cut(n->text, TEMPLATE_VALUE_MAX)), "source", text_json(n->source),
	                     "severity", n->severity, "timestamp", (json_int_t)(n->at_ms / 1000)));
	struct str account = path_part(a, json_field(receiver, "accountId"));
	endpoint_put(a, request, "newrelic", str_starts(key, STR("eu")) ? STR("EU") : STR_NONE,
	             arena_printf(a, "/v1/accounts/%.*s/events", STR_ARG(account)).p);
	header_put(request, "Api-Key", key);
	return request;
}

json_t *sms_request(struct arena *a, struct str number, const struct notice *n)
{
	json_t *request = request_of(a, json_pack("{s:o, s:o, s:o}", "to", text_json(number), "text",
	                                          text_json(text_cut(n->title, SMS_MAX)), "alertId", text_json(n->id)));
	endpoint_put(a, request, "sms", STR_NONE, "");
	return request;
}

json_t *billing_request(struct arena *a, const json_t *body)
{
	json_t *request = request_of(a, json_deep_copy(body));
	endpoint_put(a, request, "billing", STR_NONE, "");
	return request;
}

/* Webhooks. */

/* The value of {{name}}: a field of the details. In a body it stands within a JSON text, so it is escaped as one. */
static void template_value(struct arena *a, struct buf *b, const struct notice *n, struct str name, bool in_json)
{
	const json_t *value = json_object_getn(n->details, name.p, name.n);
	char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	struct str plain = json_is_string(value) ? json_str_of(value) : str_of(text);
	plain = text_cut(plain, TEMPLATE_VALUE_MAX);
	for (size_t i = 0; i < plain.n; i++) {
		char c = plain.p[i];
		if (in_json && json_is_string(value) && (c == '"' || c == '\\'))
			buf_c(b, '\\');
		if ((unsigned char)c < 0x20)
			c = ' ';
		buf_c(b, c);
	}
	free(text);
}

static struct str template_fill(struct arena *a, struct str template, const struct notice *n, bool in_json)
{
	struct buf b = {0};
	struct str rest = template;
	while (rest.n) {
		const char *open = memmem(rest.p, rest.n, "{{", 2);
		const char *end = open ? memmem(open, (size_t)(rest.p + rest.n - open), "}}", 2) : NULL;
		if (!end) {
			buf_str(&b, rest);
			break;
		}
		buf_add(&b, rest.p, (size_t)(open - rest.p));
		/* Fields beyond what a message may have are empty. */
		if (b.n < TEMPLATE_FILLED_MAX)
			template_value(a, &b, n, str_trim((struct str){open + 2, (size_t)(end - open - 2)}), in_json);
		rest = (struct str){end + 2, (size_t)(rest.p + rest.n - end - 2)};
	}
	return buf_keep(&b, a);
}

/* Headers that belong to the connection are not a template's. */
static bool header_is_allowed(struct str name)
{
	static const char taken[] = "host|content-length|transfer-encoding|connection|expect|upgrade|te|trailer";
	char lower[64];
	if (!name.n || name.n >= sizeof lower)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		if (!isalnum(c) && c != '-' && c != '_')
			return false;
		lower[i] = (char)tolower(c);
	}
	struct str text = {lower, name.n};
	return !str_is_one_of(taken, text) && !str_starts(text, STR("x-steward-"));
}

/* Lines of the form "Name: value", or a JSON object. What is no header is left out. */
static void headers_fill(struct arena *a, json_t *request, struct str template, const struct notice *n)
{
	struct str filled = template_fill(a, template, n, true), line, name, value;
	json_t *object = json_loadb(filled.p, filled.n, JSON_REJECT_DUPLICATES, NULL), *text;
	const char *key;
	json_object_foreach(object, key, text)
	{
		if (json_is_string(text) && !strpbrk(json_string_value(text), "\r\n") && header_is_allowed(str_of(key)))
			header_put(request, key, json_str_of(text));
	}
	while (!object && filled.n) {
		str_cut(filled, '\n', &line, &filled);
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (str_cut(line, ':', &name, &value) && header_is_allowed(name))
			header_put(request, arena_z(a, name), str_trim(value));
	}
	json_decref(object);
}

static struct str signature(struct arena *a, struct str secret, struct str body)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	char hex[2 * EVP_MAX_MD_SIZE + 1];
	HMAC(EVP_sha256(), secret.p, (int)secret.n, (const unsigned char *)body.p, body.n, mac, &n);
	hex_encode(mac, n, hex);
	return arena_printf(a, "sha256=%s", hex);
}

static json_t *webhook(struct arena *a, const json_t *receiver, const struct notice *n)
{
	static const char *const kinds[] = {[NOTICE_OPEN] = "alert.open",
	                                    [NOTICE_CLOSED] = "alert.closed",
	                                    [NOTICE_INFORMATION] = "alert.event",
	                                    [NOTICE_EVENT] = "event"};
	struct str body = json_field(receiver, "webhookBodyTemplate"), secret = json_field(receiver, "webhookSecret"),
	           headers = json_field(receiver, "webhookHeadersTemplate"), url, events;
	json_t *request = request_of(a, json_incref((json_t *)(uintptr_t)n->details));
	if (body.n)
		json_put_str(request, "body", template_fill(a, body, n, true));
	if (headers.n)
		headers_fill(a, request, headers, n);
	str_cut(json_field(receiver, "webhookUrl"), '#', &url, &events);
	json_put_str(request, "url", url);
	header_put(request, "X-Steward-Event", str_of(kinds[n->kind]));
	if (secret.n)
		header_put(request, "X-Steward-Signature", signature(a, secret, json_field(request, "body")));
	return request;
}

static const struct vendor {
	const char *type;
	json_t *(*make)(struct arena *a, const json_t *receiver, const struct notice *n);
} vendors[] = {{"SLACK", slack},        {"MICROSOFT_TEAMS", teams}, {"PAGER_DUTY", pagerduty},
               {"OPS_GENIE", opsgenie}, {"VICTOR_OPS", victorops},  {"DATADOG", datadog},
               {"WEBHOOK", webhook},    {"NEW_RELIC", new_relic}};

json_t *vendor_request(struct arena *a, const json_t *receiver, const struct notice *n)
{
	for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
		if (str_is(json_field(receiver, "typeName"), vendors[i].type))
			return vendors[i].make(a, receiver, n);
	return NULL;
}
