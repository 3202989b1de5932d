/* What /metrics tells of the outbox. No label names a receiver or a tenant. */
#include "base/clock.h"
#include "outbox/outbox.h"
#include "trail/metrics.h"

void outbox_metrics_write(struct buf *b, struct outbox *o)
{
	struct outbox_stats t;
	if (!o)
		return;
	outbox_stats(o, &t);
	int64_t age_ms = t.oldest_ms ? clock_now_ms() - t.oldest_ms : 0;
	metrics_number(b, "steward_outbox_messages", "gauge",
	               "Messages that wait in the store, of all processes that share it.", t.messages);
	metrics_number(b, "steward_outbox_oldest_seconds", "gauge", "Since the oldest of them was added.",
	               (uint64_t)(age_ms > 0 ? age_ms : 0) / 1000);
	metrics_number(b, "steward_outbox_receivers", "gauge", "Receivers that messages wait for.", t.receivers);
	metrics_number(b, "steward_outbox_receivers_failing", "gauge",
	               "Of them, those whose last message was not taken.", t.failing);
	metrics_head(b, "steward_outbox_attempts_total", "counter",
	             "Attempts of this process to deliver, by what came of them.");
	buf_printf(b,
	           "steward_outbox_attempts_total{result=\"delivered\"} %llu\n"
	           "steward_outbox_attempts_total{result=\"put_off\"} %llu\n"
	           "steward_outbox_attempts_total{result=\"failed\"} %llu\n",
	           (unsigned long long)t.delivered, (unsigned long long)t.put_off, (unsigned long long)t.failed);
	metrics_number(
	        b, "steward_outbox_dropped_total", "counter",
	        "Messages that were not queued: too many waited, or letters went to the address within the hour.",
	        t.dropped);
}
