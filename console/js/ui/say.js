/* Short words about what was done, for eyes and screen readers, with an optional way back. */
const SECONDS = 6;

/* While a dialog is open, all else is inert: it is said there. After the redraw, which may close the dialog. */
const place = () => [...document.querySelectorAll('dialog[open] > [data-said]')].at(-1) ?? document.getElementById('said');

export const say = (text, options) => setTimeout(() => show(place(), text, options ?? {}), 20);

function show(box, text, {undo, label}) {
	const line = document.createElement('div');
	line.className = 'toast';
	line.append(text);
	let timer = setTimeout(() => line.remove(), SECONDS * 1000);
	if (undo) {
		const button = document.createElement('button');
		button.type = 'button';
		button.textContent = label;
		button.addEventListener('click', () => {
			line.remove();
			undo();
		});
		const hold = () => clearTimeout(timer), free = () => { timer = setTimeout(() => line.remove(), SECONDS * 1000); };
		line.addEventListener('focusin', hold);
		line.addEventListener('focusout', free);
		line.append(button);
	}
	while (box.children.length > 2)
		box.firstChild.remove();
	box.append(line);
}
