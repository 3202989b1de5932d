/* What SAML identity providers must know of the service, which is a service provider to them. */
#ifndef STEWARD_IDENTITY_SAML_H
#define STEWARD_IDENTITY_SAML_H

#include "base/arena.h"
#include "base/buf.h"

/* Where a provider sends its answers, and the name by which it knows us. */
struct str saml_acs_url(struct arena *a, const char *base_url, struct str okta_id);
struct str saml_audience(struct arena *a, const char *base_url, struct str okta_id);

/* The document that an identity provider's administrator loads to know us: an EntityDescriptor. */
void saml_metadata_write(struct buf *b, struct arena *a, const char *base_url, struct str okta_id);

#endif
