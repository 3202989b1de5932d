/* SAML 2.0 metadata of the service as a service provider. */
#ifndef STEWARD_API_FEDERATION_SAML_METADATA_H
#define STEWARD_API_FEDERATION_SAML_METADATA_H

#include "base/arena.h"
#include "base/buf.h"

/* Where a provider sends its answers, and the name by which it knows us. */
struct str saml_acs_url(struct arena *a, const char *base_url, struct str okta_id);
struct str saml_audience(struct arena *a, const char *base_url, struct str okta_id);

/* The document that an identity provider's administrator loads to know us: an EntityDescriptor. */
void saml_metadata_write(struct buf *b, struct str acs_url, struct str audience);

#endif
