/* Switches that hold at once, with the way back. */
import {html, useState, Check, Notice, errorText, sayUndo, useMay} from './kit.js';

/* values: what is; rows: [[key, label, help]]; onChange(key, value): saves it, by the operation op. */
export function Switches({op, values, rows, onChange}) {
	const may = useMay(), [error, setError] = useState(null), [wanted, setWanted] = useState({});
	const turn = async (key, label, value, back) => {
		setError(null);
		setWanted(all => ({...all, [key]: value}));
		try {
			await onChange(key, value);
			if (!back)
				sayUndo(label, () => turn(key, label, !value, true));
		} catch (e) {
			setError(e);
			setWanted(({[key]: _, ...rest}) => rest);
		}
	};
	return html`${error && html`<${Notice} kind="bad">${errorText(error)}<//>`}<div
		class="form">${rows.map(([key, label, help]) => html`<${Check} key=${key} checked=${Boolean(wanted[key] ?? values[key])}
		onInput=${v => turn(key, label, v)} label=${label} help=${help} disabled=${!may(op)} />`)}</div>`;
}
