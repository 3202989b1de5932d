/* Runs before the first paint, so that a chosen theme does not flash. The choice is all that the console stores. */
'use strict';
(() => {
	let chosen = null;
	try {
		chosen = localStorage.getItem('theme');
	} catch { /* storage may be forbidden: the system's theme it is */ }
	const dark = matchMedia('(prefers-color-scheme: dark)');
	const apply = () => {
		document.documentElement.dataset.theme = chosen === 'dark' || chosen === 'light' ? chosen : dark.matches ? 'dark' : 'light';
	};
	dark.addEventListener('change', apply);
	apply();
	/* theme(): what was chosen ('light', 'dark' or 'system'); theme(x): chooses. */
	globalThis.theme = value => {
		if (value) {
			chosen = value === 'system' ? null : value;
			try {
				if (chosen)
					localStorage.setItem('theme', chosen);
				else
					localStorage.removeItem('theme');
			} catch { /* it lasts for this page, then */ }
			apply();
			dispatchEvent(new Event('theme'));
		}
		return chosen || 'system';
	};
})();
