/* The QR code of an authenticator's secret. The sums are of pictures that a reader of QR codes has read. */
import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {test} from 'node:test';
import {qrPath} from '../../console/js/qr.js';

const secret = 'otpauth://totp/Steward:owner%40example.org?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Steward';
const SUMS = {1: '29 99d506d76687df86', 17: '29 b6dc5063e531c5a9', 53: '37 da86da8a0f872830', 78: '41 39d3ab9aec1ca0fd', 97: '45 9b0e8e70c951be62',
	106: '45 b4ee4736f869c1dd', 134: '49 6b1ede5015d37f3d', 154: '53 4e87a3885c0fa212', 192: '57 fbfa267d2cb29f2b', 230: '61 ae607e64a1cf352f', 271: '65 51af3be318160e59'};
const sum = text => createHash('sha256').update(qrPath(text).path).digest('hex').slice(0, 16);

test('pictures of all sizes are those that were read', () => {
	const made = Object.fromEntries([secret, 'a', ...[17, 53, 78, 106, 134, 154, 192, 230, 271].map(n => 'x'.repeat(n))].map(text => [text.length, `${qrPath(text).box.split(' ')[2]} ${sum(text)}`]));
	assert.deepEqual(made, SUMS);
	assert.equal(qrPath('x'.repeat(272)), null, 'too long for what we draw');
});
