export const routes = [
	['/operations', () => import('./index.js')],
	['/operations/:operationId', () => import('./operation.js')]
];
