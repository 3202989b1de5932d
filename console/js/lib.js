/* Preact and htm, and the few things that every module needs. */
import {useEffect as effect, useReducer as reducer} from '../lib/preact.js';
export {
	html, render, h, Component, createContext, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext,
	useErrorBoundary
} from '../lib/preact.js';

/* The address of a file of the console, such as 'texts/en.json'. */
export const file = path => new URL(`../${path}`, import.meta.url).href;

let ids = 0;
/* An id for a label and its field; the same for the life of a component when kept in a ref or state. */
export const freshId = (prefix = 'i') => prefix + ++ids;

/* Class names: those whose condition holds. */
export const cls = (...names) => names.flat().filter(Boolean).join(' ') || undefined;

/* A value that components follow: get(), set(value), use() in a component. */
export function store(value) {
	const followers = new Set();
	const self = {
		get: () => value,
		set(next) {
			if (next === value)
				return;
			value = next;
			for (const f of [...followers])
				f();
		},
		follow(f) {
			followers.add(f);
			return () => followers.delete(f);
		},
		use() {
			const [, redraw] = reducer(n => n + 1, 0), drawn = value;
			effect(() => {
				const free = self.follow(redraw);
				/* It may have changed after this was drawn and before it is followed. */
				if (value !== drawn)
					redraw();
				return free;
			}, []);
			return value;
		}
	};
	return self;
}
