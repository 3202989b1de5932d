/* The service's own identities at cloud providers, as the configuration says. */
#include "serve/providers.h"

#include "providers/providers.h"

int providers_start(const struct config *c, struct service *v)
{
	struct provider_settings settings = {.aws_arn = c->provider_aws_arn,
	                                     .aws_key_id = c->provider_aws_key_id,
	                                     .aws_secret_file = c->provider_aws_secret_file,
	                                     .aws_region = c->provider_aws_region,
	                                     .aws_endpoint = c->provider_aws_endpoint,
	                                     .azure_app_id = c->provider_azure_app_id,
	                                     .azure_secret_file = c->provider_azure_secret_file,
	                                     .azure_endpoint = c->provider_azure_endpoint,
	                                     .google_key_file = c->provider_google_key_file,
	                                     .google_endpoint = c->provider_google_endpoint,
	                                     .ca_file = c->provider_ca_file};
	return providers_open(&settings, &v->providers);
}
