/* list.c -- the parts of the list that walk it; the rest is in the header. */
#include "base/list.h"

size_t list_count(const list *l) {
    size_t count = 0;
    LIST_FOR (node, l) count++;
    return count;
}

void list_check(const list *l) {
    const list_node *node = &l->head;
    do {
        assert(node->next && node->next->prev == node);
        node = node->next;
    } while (node != &l->head);
}
