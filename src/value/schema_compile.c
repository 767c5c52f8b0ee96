/* schema_compile.c -- from a value to a graph of nodes.
 *
 * Three steps over one list of *drafts*, one for each schema inside the schema:
 *
 *     1. fill     each draft in turn: check its keywords, fill its node, append its children
 *                 (schema_fill.c)
 *     2. resolve  find the draft that each `$ref` names
 *     3. settle   along `$ref` and `anyOf`, which consume no input: refuse cycles, and let each
 *                 reference take over what it refers to
 *
 * Nothing recurses: the list is the queue. Everything that is wrong is refused with its path. */
#include "base/env.h"
#include "value/heap.h"
#include "value/schema_draft.h"

/* ---- 2. Resolve -------------------------------------------------------------------------- */

/* Takes the next segment off a pointer, which begins with "/", into memory of the schema. */
static bool pointer_segment(schema_compiler *c, const char **at, const char *end, char **segment,
                            size_t *length) {
    const char *from = *at + 1, *to = memchr(from, '/', (size_t)(end - from));
    *at = to = to ? to : end;
    char *out = arena_alloc(&c->schema->memory, (size_t)(to - from) + 1);
    if (!out) return draft_fail_memory(c);
    *segment = out;
    for (; from < to; from++) {
        bool escape = *from == '~' && from + 1 < to && (from[1] == '0' || from[1] == '1');
        *out++ = escape ? (*++from == '0' ? '~' : '/') : *from;
    }
    *out = 0;
    *length = (size_t)(out - *segment);
    return true;
}

/* The draft that a pointer names, from the root; DRAFT_NONE: there is no schema at that place. */
static bool resolve_pointer(schema_compiler *c, const char *at, const char *end, uint32_t *out) {
    uint32_t found = 0;
    while (at < end && *at == '/' && found != DRAFT_NONE) {
        char *segment;
        size_t length;
        if (!pointer_segment(c, &at, end, &segment, &length)) return false;
        keyword k = schema_keyword_find(segment, length);
        segment = "";
        length = 0;
        bool many = k < KEYWORD_COUNT && schema_keywords[k].child == CHILD_MANY;
        if (many && at < end && !pointer_segment(c, &at, end, &segment, &length)) return false;
        found = draft_find_child(c, found, k, segment, length);
    }
    *out = at == end ? found : DRAFT_NONE;
    return true;
}

static bool resolve(schema_compiler *c, uint32_t i) {
    size_t length;
    const char *text = hd_value_text(draft_keyword(c, i, KEYWORD_REF), &length);
    if (!text) return true;
    uint32_t target = DRAFT_NONE;
    if (length > 0 && text[0] == '#' && !resolve_pointer(c, text + 1, text + length, &target))
        return false;
    if (target == DRAFT_NONE)
        return draft_fail(c, i, spot_keyword(KEYWORD_REF), "there is no schema at \"%s\"", text);
    c->drafts.items[i].target = target;
    return true;
}

/* ---- 3. Settle --------------------------------------------------------------------------- */

/* What a reference says itself (brands, a default) goes before what it refers to. */
static void take_over(schema_node *node, const schema_node *target) {
    unsigned flags = node->flags & (SCHEMA_BOUNDARY | SCHEMA_SHALLOW);
    hd_value default_value = node->default_value;
    *node = *target;
    if (flags & SCHEMA_BOUNDARY) node->flags &= ~SCHEMA_BOUNDARY;
    node->flags |= flags;
    if (value_exists(default_value)) node->default_value = default_value;
}

/* The drafts that a value at this one is matched with before any of it is consumed. */
static uint32_t settle_next(const draft *d, uint32_t n) {
    if (d->target != DRAFT_NONE) return n == 0 ? d->target : DRAFT_NONE;
    return n < d->node->any_count ? d->any_first + n : DRAFT_NONE;
}

static bool settle_open(schema_compiler *c, uint32_t i) {
    draft *d = &c->drafts.items[i];
    if (d->state == SETTLED) return true;
    if (d->state == OPEN)
        return draft_fail(c, i, spot_itself,
                          "the schema leads back to itself without consuming any input");
    d->state = OPEN;
    if (!vec_push(c->env, &c->open, ((settle_frame){ i, 0 }))) return draft_fail_memory(c);
    return true;
}

static bool settle(schema_compiler *c, uint32_t i) {
    if (!settle_open(c, i)) return false;
    while (c->open.count > 0) {
        settle_frame *frame = &vec_last(&c->open);
        draft *d = &c->drafts.items[frame->draft];
        uint32_t next = settle_next(d, frame->next++);
        if (next != DRAFT_NONE) {
            if (!settle_open(c, next)) return false;
            continue;
        }
        if (d->target != DRAFT_NONE) take_over(d->node, c->drafts.items[d->target].node);
        d->state = SETTLED;
        c->open.count--;
    }
    return true;
}

/* ---- Check ------------------------------------------------------------------------------- */

/* Asserts that a part of a node has been settled. */
static void check_part(const schema_node *part) {
    assert(part && part->body && part->body->body == part->body);
    (void)part;
}

static void check_node(const schema_node *node) {
    check_part(node->additional);
    check_part(node->items);
    for (uint32_t i = 0; i < node->prefix_count; i++) check_part(node->prefix[i]);
    for (uint32_t i = 0; i < node->any_count; i++) check_part(node->any[i]);
    for (uint32_t i = 0; i < node->property_count; i++) {
        check_part(node->properties[i].node);
        assert(i == 0 ||
               draft_compare_properties(&node->properties[i - 1], &node->properties[i]) < 0);
    }
    assert(!node->any_count || !(node->flags & (SCHEMA_KEYS | SCHEMA_ELEMENTS)));
    assert(!(node->flags & SCHEMA_NAMED_ONLY) || (node->flags & SCHEMA_KEYS));
}

/* ---- The whole --------------------------------------------------------------------------- */

static bool compile(schema_compiler *c) {
    draft root = { .source = c->schema->source,
                   .parent = DRAFT_NONE,
                   .keyword = KEYWORD_COUNT,
                   .target = DRAFT_NONE };
    if (!draft_add(c, root)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!draft_fill(c, i)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!resolve(c, i)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++)
        if (!settle(c, i)) return false;
    for (uint32_t i = 0; i < c->drafts.count; i++) check_node(c->drafts.items[i].node);
    c->schema->root = c->drafts.items[0].node;
    c->schema->node_count = c->drafts.count;
    return true;
}

static void compiler_fini(schema_compiler *c) {
    vec_fini(c->env, &c->drafts);
    vec_fini(c->env, &c->properties);
    vec_fini(c->env, &c->open);
    table_fini(&c->children);
}

hd_status hd_schema_compile(hd_heap *heap, hd_value source, hd_schema **out, hd_error *error) {
    *out = NULL;
    schema_compiler c = { .env = &heap->env, .error = error };
    table_init(&c.children, c.env);
    if (value_is_failed(source)) {
        env_error(error, hd_value_status(source), "%s", hd_status_text(hd_value_status(source)));
        return hd_value_status(source);
    }
    c.schema = env_new(c.env, sizeof *c.schema);
    if (!c.schema) {
        draft_fail_memory(&c);
        goto done;
    }
    *c.schema = (hd_schema){ .heap = heap, .source = hd_value_ref(source), .refs = 1 };
    arena_init(&c.schema->memory, c.env);
    if (!compile(&c)) goto done;

    *out = c.schema;
    c.schema = NULL; /* handed to the caller */
done:
    compiler_fini(&c);
    hd_schema_close(c.schema);
    return c.status;
}

void hd_schema_close(hd_schema *schema) {
    if (!schema) return;
    assert(schema->refs);
    if (--schema->refs) return;
    const hd_env *env = &schema->heap->env;
    arena_fini(&schema->memory);
    hd_value_unref(schema->source);
    env_free(env, schema, sizeof *schema);
}
