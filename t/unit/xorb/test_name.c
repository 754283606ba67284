
/*
 * Tests names of stored xorbs: printing and parsing; only one form is valid.
 */


#include "xet_test.h"
#include "xet_xorb.h"


#define HASH  "a8a29cec7fb2e7281ac4e7a1ec2d2bcc1ac4e7a1ec2d2bcc0123456789abcdef"


static void
test_print(void)
{
    uint8_t     name[XET_XORB_NAME_MAX + 1];
    uint8_t    *end;
    unsigned    i;
    uint32_t    copy_id;
    xet_hash_t  hash, back;

    static const struct {
        uint32_t     copy_id;
        const char  *name;
    } cases[] = {
        { 0, HASH },
        { 1, HASH ".00000001" },
        { 0x0a0b0c0d, HASH ".0a0b0c0d" },
        { UINT32_MAX, HASH ".ffffffff" }
    };

    (void) xet_hash_parse(&hash, (const uint8_t *) HASH, 64);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(name, 0xaa, sizeof(name));

        end = xet_xorb_name_print(name, &hash, cases[i].copy_id);

        xet_ok((size_t) (end - name) == strlen(cases[i].name)
               && memcmp(name, cases[i].name, strlen(cases[i].name)) == 0
               && *end == 0xaa,
               "copy id %u", cases[i].copy_id);

        memset(&back, 0, sizeof(back));
        copy_id = 77;

        xet_is_u64(xet_xorb_name_parse(&back, &copy_id, name,
                                       (size_t) (end - name)),
                   XET_OK, "and back");
        xet_ok(copy_id == cases[i].copy_id && xet_hash_equal(&back, &hash),
               "to the same");
    }
}


static void
test_refused(void)
{
    unsigned    i;
    uint32_t    copy_id;
    xet_hash_t  hash, before;

    static const char  *const  cases[] = {
        "", "a", HASH "0", HASH ".", HASH ".0000000", HASH ".000000001",
        HASH ".00000000", HASH ".0000000A", HASH ".0000000g",
        HASH "-00000001", HASH ".+0000001", HASH ". 0000001",
        "A8a29cec7fb2e7281ac4e7a1ec2d2bcc1ac4e7a1ec2d2bcc0123456789abcdef",
        "A8a29cec7fb2e7281ac4e7a1ec2d2bcc1ac4e7a1ec2d2bcc0123456789abcdef"
        ".00000001",
        "g8a29cec7fb2e7281ac4e7a1ec2d2bcc1ac4e7a1ec2d2bcc0123456789abcdef"
    };

    memset(&hash, 0x5a, sizeof(hash));
    before = hash;
    copy_id = 77;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        xet_is_u64(xet_xorb_name_parse(&hash, &copy_id,
                                       (const uint8_t *) cases[i],
                                       strlen(cases[i])),
                   XET_HASH_SYNTAX, cases[i]);
    }

    xet_ok(copy_id == 77 && xet_hash_equal(&hash, &before),
           "nothing is written");
}


static void
test_aside(void)
{
    uint8_t     name[XET_XORB_QUARANTINE_MAX + 1], *end;
    uint32_t    copy_id;
    uint64_t    sweep;
    unsigned    i;
    xet_hash_t  hash, back;

    static const struct {
        uint64_t     sweep;
        uint32_t     copy_id;
        const char  *name;
    } cases[] = {
        { 0, 0, "orphan.0." HASH },
        { 4711, 1, "orphan.4711." HASH ".00000001" },
        { UINT64_MAX, UINT32_MAX,
          "orphan.18446744073709551615." HASH ".ffffffff" }
    };

    static const char  *const  refused[] = {
        "", "orphan", "orphan.", "orphan.1", "orphan.1.", "orphan.." HASH,
        "orphan.1" HASH, "orphan.01." HASH, "orphan.x." HASH,
        "orphan.-1." HASH, "orphan.1." HASH ".0000000", "Orphan.1." HASH,
        "orphan.18446744073709551616." HASH, HASH
    };

    (void) xet_hash_parse(&hash, (const uint8_t *) HASH, 64);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(name, 0xaa, sizeof(name));

        end = xet_xorb_quarantine_print(name, cases[i].sweep, &hash,
                                        cases[i].copy_id);

        xet_ok((size_t) (end - name) == strlen(cases[i].name)
               && memcmp(name, cases[i].name, strlen(cases[i].name)) == 0
               && *end == 0xaa, "%s", cases[i].name);

        memset(&back, 0, sizeof(back));

        xet_ok(xet_xorb_quarantine_parse(&sweep, &back, &copy_id, name,
                                    (size_t) (end - name))
               == XET_OK
               && sweep == cases[i].sweep && copy_id == cases[i].copy_id
               && xet_hash_equal(&back, &hash), "and back");
    }

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        xet_is_u64(xet_xorb_quarantine_parse(&sweep, &hash, &copy_id,
                                        (const uint8_t *) refused[i],
                                        strlen(refused[i])),
                   XET_HASH_SYNTAX, refused[i]);
    }
}


int
main(void)
{
    test_print();
    test_refused();
    test_aside();

    return xet_done();
}
