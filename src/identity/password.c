/* scrypt with OpenSSL. The parameters are part of the text, so that they can be raised later while old passwords still
 * verify. Parameters that are read from a text are bounded, because they decide how much memory is used. */
#include "identity/password.h"

#include "base/base64.h"
#include "base/id.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define COST_LOG 15
#define COST_LOG_CHEAP 4
#define COST_LOG_MAX 20
#define BLOCK 8
#define PARALLEL 3
#define SALT 16
#define HASH 32
#define MEMORY_MAX (UINT64_C(256) << 20)
#define AT_ONCE 2
#define NOBODYS "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static unsigned busy;
static atomic_bool cheap;

void password_cheap(bool are_cheap)
{
	cheap = are_cheap;
}

static bool derive(struct str password, const unsigned char *salt, size_t salt_n, unsigned cost_log, unsigned parallel,
                   unsigned char ret_hash[HASH])
{
	pthread_mutex_lock(&lock);
	while (busy == AT_ONCE)
		pthread_cond_wait(&room, &lock);
	busy++;
	pthread_mutex_unlock(&lock);
	bool ok = EVP_PBE_scrypt(password.p ? password.p : "", password.n, salt, salt_n, UINT64_C(1) << cost_log, BLOCK,
	                         parallel, MEMORY_MAX, ret_hash, HASH) == 1;
	pthread_mutex_lock(&lock);
	busy--;
	pthread_cond_signal(&room);
	pthread_mutex_unlock(&lock);
	return ok;
}

int password_hash(struct arena *a, struct str password, struct str *ret_text)
{
	unsigned char salt[SALT], hash[HASH];
	char salt_text[BASE64_TEXT(SALT)], hash_text[BASE64_TEXT(HASH)];
	bool is_cheap = cheap;
	unsigned cost_log = is_cheap ? COST_LOG_CHEAP : COST_LOG, parallel = is_cheap ? 1 : PARALLEL;
	random_bytes(salt, sizeof salt);
	if (!derive(password, salt, sizeof salt, cost_log, parallel, hash))
		return -ENOMEM;
	base64url_encode(salt, sizeof salt, salt_text);
	base64url_encode(hash, sizeof hash, hash_text);
	OPENSSL_cleanse(hash, sizeof hash);
	*ret_text = arena_printf(a, "$scrypt$ln=%u,r=%d,p=%u$%s$%s", cost_log, BLOCK, parallel, salt_text, hash_text);
	return 0;
}

struct str password_nobodys(void)
{
	return cheap ? STR("$scrypt$ln=4,r=8,p=1$" NOBODYS) : STR("$scrypt$ln=15,r=8,p=3$" NOBODYS);
}

static bool number_take(struct str *rest, struct str name, char end, uint64_t max, unsigned *ret_value)
{
	struct str text, after;
	uint64_t value;
	if (!str_starts(*rest, name))
		return false;
	*rest = (struct str){rest->p + name.n, rest->n - name.n};
	if (!str_cut(*rest, end, &text, &after) || !str_to_u64(text, max, &value) || value == 0)
		return false;
	*rest = after;
	*ret_value = (unsigned)value;
	return true;
}

bool password_verify(struct str password, struct str kept)
{
	unsigned char salt[64], hash[HASH], mine[HASH];
	unsigned cost_log, block, parallel;
	struct str salt_text, hash_text;
	if (!str_starts(kept, STR("$scrypt$")))
		return false;
	struct str rest = {kept.p + 8, kept.n - 8};
	if (!number_take(&rest, STR("ln="), ',', COST_LOG_MAX, &cost_log) ||
	    !number_take(&rest, STR("r="), ',', BLOCK, &block) || block != BLOCK ||
	    !number_take(&rest, STR("p="), '$', 16, &parallel) || !str_cut(rest, '$', &salt_text, &hash_text))
		return false;
	ssize_t salt_n = base64_decode(salt_text, salt, sizeof salt),
	        hash_n = base64_decode(hash_text, hash, sizeof hash);
	if (salt_n <= 0 || hash_n != HASH || !derive(password, salt, (size_t)salt_n, cost_log, parallel, mine))
		return false;
	return CRYPTO_memcmp(mine, hash, HASH) == 0;
}
