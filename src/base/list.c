/* list.c -- the parts of the list that walk or splice; the rest is in the header. */
#include "base/list.h"

void list_append_all(list *to, list *from) {
    if (list_empty(from)) return;
    list_node *first = from->head.next, *last = from->head.prev;
    first->prev = to->head.prev;
    to->head.prev->next = first;
    last->next = &to->head;
    to->head.prev = last;
    list_init(from);
}

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
