/* Key services, as the configuration says. */
#include "serve/keys.h"

#include "api/encryption_at_rest/encryption_at_rest.h"
#include "keys/keys.h"

int keys_start(const struct config *c, struct service *v, struct arena *a)
{
	struct key_settings settings = {.aws_endpoint = c->keys_aws_endpoint,
	                                .azure_endpoint = c->keys_azure_endpoint,
	                                .google_endpoint = c->keys_google_endpoint,
	                                .azure_login = c->provider_azure_endpoint,
	                                .local = c->keys_local,
	                                .pkcs11_module = c->keys_pkcs11_module,
	                                .pkcs11_token = c->keys_pkcs11_token,
	                                .pkcs11_keys = c->keys_pkcs11_keys,
	                                .pkcs11_pin_file = c->keys_pkcs11_pin_file};
	v->data_keys = encryption_data_keys(v, a);
	return keys_open(&settings, v->providers, &v->keys);
}
