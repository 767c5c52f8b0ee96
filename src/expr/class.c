/* class.c -- see class.h. */
#include "expr/class.h"

#define CLASS_MAX 60000

/* ---- The table --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t base;
} builtin[] = {
#define CLASS_ROW(name, base) { #name, CLASS_##base },
    CLASS_TYPES(CLASS_ROW) CLASS_EXCEPTIONS(CLASS_ROW)
#undef CLASS_ROW
};

static char *copy_name(const hd_env *env, const char *name) {
    return env_new_copy(env, name, strlen(name) + 1);
}

static void free_name(const hd_env *env, char *name) {
    if (name) env_free(env, name, strlen(name) + 1);
}

static void free_info(const hd_env *env, class_info *i) {
    free_name(env, i->name);
    for (uint32_t f = 0; i->fields && f < i->fields_count; f++) free_name(env, i->fields[f]);
    env_free(env, i->fields, i->fields_count * sizeof *i->fields);
    env_free(env, i->more, i->more_count * sizeof *i->more);
}

/* A copy whose texts are ours. */
static hd_status copy_info(const hd_env *env, const class_info *from, class_info *to) {
    *to = *from;
    to->fields = NULL;
    to->more = from->more_count ? env_new_copy(env, from->more, from->more_count * sizeof *to->more)
                                : NULL;
    to->name = copy_name(env, from->name);
    bool whole = to->name && (to->more || !from->more_count);
    if (whole && from->fields_count) {
        to->fields = env_new0(env, from->fields_count * sizeof *to->fields);
        whole = to->fields != NULL;
    }
    for (uint32_t i = 0; whole && i < from->fields_count; i++)
        whole = (to->fields[i] = copy_name(env, from->fields[i])) != NULL;
    if (whole) return HD_OK;
    free_info(env, to);
    return HD_NOMEM;
}

static hd_status push_copy(classes *c, const class_info *info) {
    class_info own;
    hd_status status = copy_info(&c->env, info, &own);
    if (status) return status;
    if (vec_push(&c->env, &c->all, own)) return HD_OK;
    free_info(&c->env, &own);
    return HD_NOMEM;
}

hd_status classes_open(const hd_env *env, classes **out) {
    hd_env own = env_copy(env);
    classes *c = env_new0(&own, sizeof *c);
    *out = NULL;
    if (!c) return HD_NOMEM;
    c->env = own;
    classes_use(c, NULL);
    for (uint32_t i = 0; i < CLASS_BUILTIN_COUNT; i++) {
        uint8_t kind = i < CLASS_BaseException ? CLASS_BUILTIN : CLASS_EXCEPTION;
        char name[64];
        strcpy(name, builtin[i].name);
        if (push_copy(c, &(class_info){ .name = name, .base = builtin[i].base, .kind = kind })) {
            classes_close(c);
            return HD_NOMEM;
        }
    }
    *out = c;
    return HD_OK;
}

void classes_close(classes *c) {
    if (!c) return;
    hd_env env = c->env;
    for (uint32_t i = 0; i < c->all.count; i++) free_info(&env, &c->all.items[i]);
    vec_fini(&env, &c->all);
    vec_fini(&env, &c->own.all);
    env_free(&env, c, sizeof *c);
}

void classes_end(classes *c, class_names *names) {
    vec_fini(&c->env, &names->all);
    if (c->names == names) classes_use(c, NULL);
}

static bool same_info(const class_info *a, const class_info *b) {
    if (a->base != b->base || a->kind != b->kind || a->flags != b->flags ||
        a->fields_count != b->fields_count || a->required != b->required ||
        a->more_count != b->more_count)
        return false;
    if (a->more_count && memcmp(a->more, b->more, a->more_count * sizeof *a->more) != 0)
        return false;
    for (uint32_t i = 0; i < a->fields_count; i++)
        if (strcmp(a->fields[i], b->fields[i]) != 0) return false;
    return true;
}

static hd_status name_class(classes *c, uint32_t id) {
    return vec_push(&c->env, &c->names->all, id) ? HD_OK : HD_NOMEM;
}

hd_status classes_add(classes *c, const class_info *info, uint32_t *out) {
    *out = classes_find(c, info->name, strlen(info->name));
    if (*out != CLASS_NONE) return same_info(class_of(c, *out), info) ? HD_OK : HD_EXISTS;
    if (c->all.count >= CLASS_MAX) return HD_LIMIT;
    assert(info->base < c->all.count && info->kind != CLASS_BUILTIN);
    hd_status status = push_copy(c, info);
    if (!status) status = name_class(c, c->all.count - 1);
    *out = status ? CLASS_NONE : c->all.count - 1;
    return status;
}

hd_status classes_define(classes *c, const class_info *info, uint32_t *out) {
    *out = classes_find(c, info->name, strlen(info->name));
    for (uint32_t i = CLASS_BUILTIN_COUNT; *out == CLASS_NONE && i < c->all.count; i++) {
        if (strcmp(class_of(c, i)->name, info->name) != 0 || !same_info(class_of(c, i), info))
            continue;
        *out = i;
        return name_class(c, i);
    }
    return classes_add(c, info, out);
}

hd_status classes_link(classes *c, uint32_t id, const uint32_t *above, uint32_t count) {
    class_info *info = &c->all.items[id];
    if (!(info->flags & CLASS_OWN_BASES)) return HD_OK;
    assert(count && !info->more);
    for (uint32_t i = 0; i < count; i++) /* values of two programs may contradict each other */
        if (class_is(c, above[i], id)) return HD_OK;
    if (count > 1) info->more = env_new_copy(&c->env, above + 1, (count - 1) * sizeof *above);
    if (count > 1 && !info->more) return HD_NOMEM;
    info->more_count = count - 1;
    info->base = above[0];
    info->flags &= (uint16_t)~CLASS_OWN_BASES;
    return HD_OK;
}

bool class_is_sealed(const char *name) {
    static const char *const known[] = { "datetime:", "decimal:", "fractions:",
                                         "frozenset", "pathlib:", "uuid:" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i], strlen(known[i]))) return true;
    return false;
}

static bool has_name(const classes *c, uint32_t id, const char *name, size_t length) {
    const char *own = class_of(c, id)->name;
    return strlen(own) == length && memcmp(own, name, length) == 0;
}

/* A walk: classes are looked up when code is compiled and when records are read, from tables of a few
 * dozen. */
uint32_t classes_find(const classes *c, const char *name, size_t length) {
    for (uint32_t i = 0; i < CLASS_BUILTIN_COUNT; i++)
        if (has_name(c, i, name, length)) return i;
    for (uint32_t i = 0; i < c->names->all.count; i++)
        if (has_name(c, c->names->all.items[i], name, length)) return c->names->all.items[i];
    return CLASS_NONE;
}

bool class_is(const classes *c, uint32_t id, uint32_t base) {
    for (;; id = class_of(c, id)->base) {
        const class_info *info = class_of(c, id);
        if (id == base) return true;
        /* The only built-in class with two bases. */
        if (id == CLASS_ExceptionGroup && base == CLASS_BaseExceptionGroup) return true;
        for (uint32_t i = 0; i < info->more_count; i++)
            if (class_is(c, info->more[i], base)) return true;
        if (id == CLASS_object) return false;
    }
}

bool class_may_have_metaclass(const classes *c, uint32_t id) {
    const class_info *info = class_of(c, id);
    if (id < CLASS_BUILTIN_COUNT) return id == CLASS_Enum;
    return info->kind == CLASS_ENUM || (info->flags & (CLASS_PARTIAL | CLASS_NAMED));
}

/* ---- Of a value -------------------------------------------------------------------------- */

static uint32_t iter_class(const iter *it) {
    switch (it->what) {
    case ITER_ENUMERATE: return CLASS_enumerate;
    case ITER_ZIP: return CLASS_zip;
    case ITER_MAP: return CLASS_map;
    case ITER_FILTER: return CLASS_filter;
    case ITER_GENERATOR: return CLASS_generator;
    case ITER_BACK: return it->a.kind == EV_LIST ? CLASS_list_reverseiterator : CLASS_reversed;
    case ITER_DICT_BACK: return CLASS_dict_reversekeyiterator;
    default: return CLASS_list_iterator;
    }
}

uint32_t ev_class(ev v) {
    switch (v.kind) {
    case EV_NONE: return CLASS_NoneType;
    case EV_BOOL: return CLASS_bool;
    case EV_INT: return CLASS_int;
    case EV_FLOAT: return CLASS_float;
    case EV_TYPE: return CLASS_type;
    case EV_FUNC: return CLASS_builtin_function_or_method;
    case EV_STR: return CLASS_str;
    case EV_BYTES: return CLASS_bytes;
    case EV_TUPLE: return v.o->class_ ? v.o->class_ : CLASS_tuple;
    case EV_RANGE: return CLASS_range;
    case EV_LIST: return CLASS_list;
    case EV_DICT: return CLASS_dict;
    case EV_SET: return CLASS_set;
    case EV_VIEW: return CLASS_dict_keys + v.view->what;
    case EV_ITER: return iter_class(v.iter);
    case EV_ENUM:
    case EV_EXC:
    case EV_RECORD: return v.o->class_;
    default: return CLASS_object;
    }
}
