/* id.c -- causal ids: the hash of a cause.
 *
 * A retry that has the same cause derives the same id, so that it finds what the first attempt made
 * and a duplicate collides where it should. The text hashed is the canonical JSON, which is the same
 * for equal values in every process and version; the id is public and stored, hence BLAKE2b. */
#include "value/id.h"

#include <sodium.h>

_Static_assert(HD_ID_SIZE == 1 + (ID_DIGEST_SIZE * 4 + 2) / 3 + 1, "~, base64url, NUL");

static bool absorb(const char *text, size_t length, void *ctx) {
    crypto_generichash_state *state = ctx;
    crypto_generichash_update(state, (const unsigned char *)text, length);
    return true;
}

hd_status id_digest(hd_value v, uint8_t out[ID_DIGEST_SIZE]) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, ID_DIGEST_SIZE);
    hd_status status = hd_json_write(v, HD_JSON_COMPACT, absorb, &state);
    if (!status) crypto_generichash_final(&state, out, ID_DIGEST_SIZE);
    return status;
}

hd_status hd_id_of(hd_value cause, char out[HD_ID_SIZE]) {
    uint8_t hash[ID_DIGEST_SIZE];
    out[0] = 0;
    hd_status status = id_digest(cause, hash);
    if (status) return status;
    out[0] = ID_MARK;
    sodium_bin2base64(out + 1, HD_ID_SIZE - 1, hash, sizeof hash,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return HD_OK;
}

/* 32 bytes are ten groups of three, and two. Ids are no secrets: a table will do. */
static void write_base64url(const uint8_t hash[ID_DIGEST_SIZE], char *out) {
    static const char digits[65] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < 30; i += 3, out += 4) {
        uint32_t group = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | hash[i + 2];
        out[0] = digits[group >> 18];
        out[1] = digits[group >> 12 & 63];
        out[2] = digits[group >> 6 & 63];
        out[3] = digits[group & 63];
    }
    uint32_t rest = (uint32_t)hash[30] << 16 | (uint32_t)hash[31] << 8;
    out[0] = digits[rest >> 18];
    out[1] = digits[rest >> 12 & 63];
    out[2] = digits[rest >> 6 & 63];
    out[3] = 0;
}

void id_of_text(const char *json, size_t length, char out[HD_ID_SIZE]) {
    uint8_t hash[ID_DIGEST_SIZE];
    crypto_generichash(hash, sizeof hash, (const unsigned char *)json, length, NULL, 0);
    out[0] = ID_MARK;
    write_base64url(hash, out + 1);
}
