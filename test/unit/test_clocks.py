"""Waits are by the clock that nobody sets: somebody who sets the machine's time back would hold up whoever waits by that, a look at
rights among them."""
import pathlib, re

SOURCE = pathlib.Path(__file__).resolve().parents[2] / 'src'
# A condition that has no attributes waits by the machine's time.
WITHOUT = r'(\w+)\s*=\s*PTHREAD_COND_INITIALIZER|pthread_cond_init\(&(?:\w+(?:->|\.))*(\w+), NULL\)'


def files():
	return [(f, f.read_text()) for f in sorted(SOURCE.rglob('*.c'))]


def test_waits_are_by_the_clock_that_nobody_sets():
	assert len(files()) > 300
	for file, text in files():
		plain = {a or b for a, b in re.findall(WITHOUT, text)}
		waited = set(re.findall(r'pthread_cond_timedwait\(&(?:\w+(?:->|\.))*(\w+),', text))
		assert not plain & waited, '%s: %s: wait with pthread_cond_clockwait()' % (file, plain & waited)


def test_the_machines_time_is_read_in_one_place():
	found = [str(f.relative_to(SOURCE)) for f, text in files() if 'CLOCK_REALTIME' in text]
	assert found == ['base/clock.c']
