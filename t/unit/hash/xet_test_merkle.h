
/*
 * A simple implementation of the draft's hash tree: the caller keeps each level
 * as an array, and snprintf() formats the text to hash.  It is the reference
 * for tests of the streamed tree and of subtrees.
 */

#ifndef _XET_TEST_MERKLE_H_INCLUDED_
#define _XET_TEST_MERKLE_H_INCLUDED_


#include "xet_test.h"
#include "xet_hash.h"


/* Returns how many of the n remaining nodes are merged into the next node. */

static size_t
reference_cut(const xet_merkle_node_t *nodes, size_t n)
{
    size_t  i, end;

    if (n <= 2) {
        return n;
    }

    end = (n < 9) ? n : 9;

    for (i = 2; i < end; i++) {
        if (nodes[i].hash.bytes[24] % 4 == 0) {
            return i + 1;
        }
    }

    return end;
}


static xet_merkle_node_t
reference_merge(const xet_merkle_node_t *nodes, size_t n)
{
    char               text[9 * 128], hex[65];
    size_t             i, len;
    xet_merkle_node_t  node;

    node.size = 0;
    len = 0;
    hex[64] = '\0';

    for (i = 0; i < n; i++) {
        xet_hash_print((uint8_t *) hex, &nodes[i].hash);

        len += (size_t) snprintf(text + len, sizeof(text) - len,
                                 "%s : %llu\n", hex,
                                 (unsigned long long) nodes[i].size);

        node.size += nodes[i].size;
    }

    xet_hash_keyed(xet_suite_default.node_key, text, len, &node.hash);

    return node;
}


#endif /* _XET_TEST_MERKLE_H_INCLUDED_ */
