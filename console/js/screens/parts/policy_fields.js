/* Which fields a policy's refusal is about: by the attributes of the cluster that its text reads, where the caller may read it. */
import {call, session} from './kit.js';

const ABOUT = {regions: 'region', cloudProviders: 'provider', GeneralClusterSize: 'size', LowCpuClusterSize: 'size', NvmeClusterSize: 'size',
	maxDiskSizeGB: 'disk', nodeCount: 'nodes', name: 'name', dbMajorVersion: 'version',
	backupEnabled: 'backup', pitEnabled: 'backup', terminationProtectionEnabled: 'protect'};

const fieldsOf = text => Object.keys(ABOUT).filter(k => new RegExp(`context\\.cluster\\.\\w*${k}\\b`).test(text)).map(k => ABOUT[k]);

export async function policyFields(error) {
	const ids = error.parameters.filter(p => /^[0-9a-f]{24}$/.test(p)), found = new Set();
	for (const id of ids)
		for (const {id: orgId} of session.get()?.orgs ?? []) {
			const policy = await call('getOrgResourcePolicy', {orgId, resourcePolicyId: id}).catch(() => null);
			(policy?.policies ?? []).flatMap(p => fieldsOf(p.body)).forEach(f => found.add(f));
			if (policy)
				break;
		}
	return [...found];
}
