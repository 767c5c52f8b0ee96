/* vec.h -- a typed array that grows.
 *
 *     VEC(uint32_t) readers = { 0 };
 *     if (!vec_push(env, &readers, id)) return HD_NOMEM;
 *     for (uint32_t i = 0; i < readers.count; i++) use(readers.items[i]);
 *     vec_fini(env, &readers);
 *
 * All zero is an empty vec. The macros evaluate the vec and the index several times, the item once:
 * give them plain lvalues. Items move when the vec grows.
 *
 * Cost: push amortised O(1), growth doubles; remove O(items behind); swap_remove O(1). */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <heddle/base.h>
#include <assert.h>
#include <string.h>

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *items;                                                                                  \
        uint32_t count, capacity;                                                                  \
    }

/* Private: `items` resized to hold at least `need`, and the new capacity; or, without memory,
 * both as they were. */
void *vec_grow_(const hd_env *env, void *items, uint32_t *capacity, uint64_t need, size_t size);
void vec_fini_(const hd_env *env, void *items, uint32_t capacity, size_t size);
void vec_close_gap_(void *items, uint32_t count, uint32_t index, size_t size);

/* Room for `n` more: true, or false when there is no memory. */
#define vec_room(env, v, n)                                                                        \
    ((uint64_t)(v)->count + (n) <= (v)->capacity ||                                                \
     ((v)->items = vec_grow_((env), (v)->items, &(v)->capacity, (uint64_t)(v)->count + (n),        \
                             sizeof *(v)->items),                                                  \
      (uint64_t)(v)->count + (n) <= (v)->capacity))

/* Appends; false when there is no memory, and nothing changed. */
#define vec_push(env, v, item)                                                                     \
    (vec_room(env, v, 1) ? ((v)->items[(v)->count++] = (item), true) : false)

/* Takes one item out; those behind it move down. */
#define vec_remove(v, index)                                                                       \
    (vec_close_gap_((v)->items, (v)->count, (index), sizeof *(v)->items), (void)(v)->count--)

/* Takes one item out; the last item moves to its index. */
#define vec_swap_remove(v, index)                                                                  \
    (assert((index) < (v)->count), (v)->count--, (void)((v)->items[index] = (v)->items[(v)->count]))

/* The last item, as an lvalue; and the same, taken out. */
#define vec_last(v)  ((v)->items[(v)->count - 1])
#define vec_pop(v)   ((v)->items[--(v)->count])
#define vec_clear(v) ((void)((v)->count = 0))

/* Returns the memory and leaves an empty vec. */
#define vec_fini(env, v)                                                                           \
    (vec_fini_((env), (v)->items, (v)->capacity, sizeof *(v)->items), (v)->items = NULL,           \
     (void)((v)->count = (v)->capacity = 0))

/* The next capacity of an array of records, of `size` each, that its owner resizes: twice as much; an
 * eighth more once it is large, where room that is not used weighs more than moving does (blocks of
 * that size are remapped, see env.c). */
static inline uint32_t vec_next_capacity(uint32_t capacity, size_t size) {
    return capacity + (capacity * size < (size_t)1 << 20 ? capacity : capacity / 8);
}

#define vec_check(v)                                                                               \
    (assert((v)->count <= (v)->capacity), assert(((v)->items == NULL) == ((v)->capacity == 0)))

#endif
