/* Windows of archives' schedules: over midnight, in short months, and what a schedule lacks. */
#include "api/archives/schedule.h"

#include "base/clock.h"
#include "base/json.h"

#include "check.h"

static struct arena *arena;

static int64_t ms(const char *text)
{
	int64_t at = 0;
	CHECK(clock_parse(str_of(text), &at));
	return at;
}

static void expect(const char *schedule, const char *at, const char *from, const char *to)
{
	struct archive_window w = {0};
	json_t *value = json_keep(arena, json_loads(schedule, 0, NULL));
	CHECK(archive_schedule_window(value, ms(at), &w));
	CHECK(w.from_ms == ms(from));
	CHECK(w.to_ms == ms(to));
}

static void test_windows(void)
{
	const char *night = "{\"type\":\"DAILY\",\"startHour\":22,\"startMinute\":30,\"endHour\":1,\"endMinute\":15}";
	expect(night, "2026-11-15T12:00Z", "2026-11-15T22:30Z", "2026-11-16T01:15Z");
	expect(night, "2026-11-15T22:30Z", "2026-11-15T22:30Z", "2026-11-16T01:15Z");
	expect(night, "2026-11-16T01:14Z", "2026-11-15T22:30Z", "2026-11-16T01:15Z");
	expect(night, "2026-11-16T01:15Z", "2026-11-16T22:30Z", "2026-11-17T01:15Z");
	expect("{\"type\":\"DAILY\"}", "2026-11-15T12:00Z", "2026-11-15T00:00Z", "2026-11-16T00:00Z");
	expect("{\"type\":\"DAILY\",\"startHour\":6,\"endHour\":6}", "2026-11-15T05:00Z", "2026-11-14T06:00Z",
	       "2026-11-15T06:00Z");
	/* The 15th is a Sunday. */
	expect("{\"type\":\"WEEKLY\",\"dayOfWeek\":7,\"startHour\":1,\"endHour\":2}", "2026-11-15T02:00Z",
	       "2026-11-22T01:00Z", "2026-11-22T02:00Z");
	expect("{\"type\":\"WEEKLY\",\"dayOfWeek\":1,\"startHour\":1,\"endHour\":2}", "2026-11-15T02:00Z",
	       "2026-11-16T01:00Z", "2026-11-16T02:00Z");
	const char *last = "{\"type\":\"MONTHLY\",\"dayOfMonth\":31,\"startHour\":23,\"endHour\":1}";
	expect(last, "2026-02-03T00:00Z", "2026-02-28T23:00Z", "2026-03-01T01:00Z");
	expect(last, "2028-02-03T00:00Z", "2028-02-29T23:00Z", "2028-03-01T01:00Z");
	expect(last, "2026-03-01T00:30Z", "2026-02-28T23:00Z", "2026-03-01T01:00Z");
	expect(last, "2026-03-01T01:00Z", "2026-03-31T23:00Z", "2026-04-01T01:00Z");
}

static void test_without_windows(void)
{
	struct archive_window w;
	CHECK(!archive_schedule_window(json_keep(arena, json_loads("{\"type\":\"DEFAULT\"}", 0, NULL)), 0, &w));
}

static void lacks(const char *schedule, const char *field)
{
	struct faults faults = {.count = 0};
	archive_schedule_check(json_keep(arena, json_loads(schedule, 0, NULL)), arena, &faults);
	CHECK(faults.count == (field ? 1 : 0));
	if (field && faults.count)
		CHECK(str_is(faults.list[0].path, field));
}

static void test_faults(void)
{
	lacks("{\"type\":\"DEFAULT\"}", NULL);
	lacks("{\"type\":\"DAILY\",\"startHour\":1,\"endHour\":2}", NULL);
	lacks("{}", "schedule.type");
	lacks("{\"type\":\"WEEKLY\"}", "schedule.dayOfWeek");
	lacks("{\"type\":\"MONTHLY\"}", "schedule.dayOfMonth");
	lacks("{\"type\":\"DAILY\",\"endHour\":2}", "schedule.startHour");
	lacks("{\"type\":\"DAILY\",\"startHour\":2}", "schedule.endHour");
	lacks("{\"type\":\"DAILY\",\"startMinute\":2}", "schedule.startHour");
}

int main(void)
{
	json_setup();
	arena = arena_new();
	test_windows();
	test_without_windows();
	test_faults();
	arena_free(arena);
	return CHECK_DONE();
}
