/* vfs_image.c -- files, what of them is durable, and what a power loss makes of the rest.
 *
 *                     sync                       power loss
 *     unsynced ops ----------> durable bytes <---------------- some unsynced pieces
 *
 * `current` is only a cache of "durable plus unsynced" for reading. */
#include "vfs_image.h"
#include "lab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *image_alloc(size_t size) {
    void *p = calloc(1, size ? size : 1);
    if (!p) abort();
    return p;
}

void *image_resize(void *old, size_t size) {
    void *p = realloc(old, size ? size : 1);
    if (!p) abort();
    return p;
}

/* ---- blobs and lists of operations ---- */

image_blob *image_blob_new(const void *bytes, size_t size) {
    image_blob *blob = image_alloc(sizeof *blob + size);
    atomic_init(&blob->refs, 1);
    blob->size = size;
    if (size) memcpy(blob->bytes, bytes, size);
    return blob;
}

void image_blob_unref(image_blob *blob) {
    if (blob && atomic_fetch_sub(&blob->refs, 1) == 1) free(blob);
}

void image_ops_push(image_ops *ops, const image_op *op) {
    if (ops->count == ops->capacity) {
        ops->capacity = ops->capacity ? ops->capacity * 2 : 16;
        ops->items = image_resize(ops->items, ops->capacity * sizeof *ops->items);
    }
    ops->items[ops->count++] = *op;
    if (op->blob) atomic_fetch_add(&op->blob->refs, 1);
}

void image_ops_clear(image_ops *ops) {
    for (size_t i = 0; i < ops->count; i++) image_blob_unref(ops->items[i].blob);
    free(ops->items);
    *ops = (image_ops){ 0 };
}

static void ops_copy(image_ops *to, const image_ops *from) {
    *to = (image_ops){ 0 };
    for (size_t i = 0; i < from->count; i++) image_ops_push(to, &from->items[i]);
}

/* ---- bytes ---- */

static void bytes_reserve(image_bytes *b, size_t size) {
    if (size <= b->capacity) return;
    b->capacity = size < 2 * b->capacity ? 2 * b->capacity : size;
    b->data = image_resize(b->data, b->capacity);
}

void image_bytes_truncate(image_bytes *b, uint64_t size) {
    bytes_reserve(b, (size_t)size);
    if (size > b->size) memset(b->data + b->size, 0, (size_t)size - b->size);
    b->size = (size_t)size;
}

void image_bytes_write(image_bytes *b, uint64_t at, const void *from, size_t size) {
    if (!size) return;
    if (at + size > b->size) image_bytes_truncate(b, at + size);
    memcpy(b->data + at, from, size);
}

size_t image_bytes_read(const image_bytes *b, uint64_t at, void *to, size_t size) {
    if (at >= b->size) return 0;
    size_t there = b->size - (size_t)at;
    if (size > there) size = there;
    memcpy(to, b->data + at, size);
    return size;
}

static void bytes_copy(image_bytes *to, const image_bytes *from) {
    *to = (image_bytes){ 0 };
    if (from->size) image_bytes_write(to, 0, from->data, from->size);
}

static void bytes_apply(image_bytes *b, const image_op *op) {
    if (op->kind == IMAGE_TRUNCATE) image_bytes_truncate(b, op->at);
    else image_bytes_write(b, op->at, op->blob->bytes, op->blob->size);
}

/* ---- inodes ---- */

image_inode *image_inode_new(uint32_t id, const char *name) {
    image_inode *inode = image_alloc(sizeof *inode);
    inode->id = id;
    if (name) {
        inode->name = image_alloc(strlen(name) + 1);
        strcpy(inode->name, name);
    }
    return inode;
}

void image_inode_free(image_inode *inode) {
    if (!inode) return;
    image_ops_clear(&inode->unsynced);
    free(inode->current.data);
    free(inode->durable.data);
    free(inode->name);
    free(inode);
}

static image_inode *inode_clone(const image_inode *from, bool live) {
    image_inode *to = image_inode_new(from->id, from->name);
    bytes_copy(&to->durable, &from->durable);
    if (live) bytes_copy(&to->current, &from->current);
    ops_copy(&to->unsynced, &from->unsynced);
    to->linked = from->linked;
    to->linked_durably = from->linked_durably;
    to->synced = from->synced;
    return to;
}

static void inode_change(image_inode *inode, const image_op *op, bool live) {
    if (live) bytes_apply(&inode->current, op);
    image_ops_push(&inode->unsynced, op);
}

static void inode_sync(image_inode *inode) {
    for (size_t i = 0; i < inode->unsynced.count; i++)
        bytes_apply(&inode->durable, &inode->unsynced.items[i]);
    image_ops_clear(&inode->unsynced);
    inode->synced = true;
}

/* ---- the image ---- */

void image_init(image *img, uint32_t sector_size, bool whole_sectors) {
    assert(sector_size >= 512 && sector_size <= 65536 && (sector_size & (sector_size - 1)) == 0);
    *img = (image){ .sector_size = sector_size, .whole_sectors = whole_sectors, .live = true };
}

void image_fini(image *img) {
    for (uint32_t i = 0; i < img->count; i++) image_inode_free(img->inodes[i]);
    free(img->inodes);
    image_ops_clear(&img->directory);
    *img = (image){ 0 };
}

static void inodes_push(image *img, image_inode *inode) {
    if (img->count == img->capacity) {
        img->capacity = img->capacity ? img->capacity * 2 : 8;
        img->inodes = image_resize(img->inodes, img->capacity * sizeof(image_inode *));
    }
    img->inodes[img->count++] = inode;
}

void image_clone(image *to, const image *from, bool live) {
    assert(!live || from->live);
    image_init(to, from->sector_size, from->whole_sectors);
    to->live = live;
    for (uint32_t i = 0; i < from->count; i++)
        inodes_push(to, from->inodes[i] ? inode_clone(from->inodes[i], live) : NULL);
    ops_copy(&to->directory, &from->directory);
}

image_inode *image_find(const image *img, const char *name) {
    for (uint32_t i = img->count; i-- > 0;) {
        image_inode *inode = img->inodes[i];
        if (inode && inode->linked && strcmp(inode->name, name) == 0) return inode;
    }
    return NULL;
}

void image_collect(image *img, image_inode *inode) {
    if (inode->linked || inode->linked_durably || inode->handles) return;
    for (size_t i = 0; i < img->directory.count; i++)
        if (img->directory.items[i].inode == inode->id) return; /* may yet come back */
    img->inodes[inode->id] = NULL;
    image_inode_free(inode);
}

static void directory_apply(image *img, const image_op *op) {
    image_inode *inode = img->inodes[op->inode];
    if (inode) inode->linked_durably = op->kind == IMAGE_CREATE;
}

static void directory_sync(image *img) {
    for (size_t i = 0; i < img->directory.count; i++)
        directory_apply(img, &img->directory.items[i]);
    image_ops_clear(&img->directory);
    for (uint32_t i = 0; i < img->count; i++)
        if (img->inodes[i]) image_collect(img, img->inodes[i]);
}

static void inode_create(image *img, const image_op *op) {
    assert(op->inode == img->count);
    image_inode *inode = image_inode_new(op->inode, (const char *)op->blob->bytes);
    inode->linked = true;
    inodes_push(img, inode);
    image_ops_push(&img->directory, op);
}

void image_apply(image *img, const image_op *op) {
    if (op->kind == IMAGE_MARK) return;
    if (op->kind == IMAGE_SYNC_DIR) {
        directory_sync(img);
        return;
    }
    if (op->kind == IMAGE_CREATE) {
        inode_create(img, op);
        return;
    }
    image_inode *inode = op->inode < img->count ? img->inodes[op->inode] : NULL;
    if (!inode) return;
    if (op->kind == IMAGE_SYNC) {
        inode_sync(inode);
    } else if (op->kind == IMAGE_UNLINK) {
        inode->linked = false;
        image_ops_push(&img->directory, op);
    } else {
        inode_change(inode, op, img->live);
    }
}

size_t image_durable_size(const image *img) {
    size_t size = 0;
    for (uint32_t i = 0; i < img->count; i++)
        if (img->inodes[i]) size += img->inodes[i]->durable.size;
    return size;
}

uint64_t image_current_size(const image *img) {
    uint64_t size = 0;
    for (uint32_t i = 0; i < img->count; i++)
        if (img->inodes[i]) size += img->inodes[i]->current.size;
    return size;
}

/* ---- power loss ---- */

/* A fair coin for each of a thousand pieces never loses all or none of them, nor just the last.
 * So a crash first draws, for each file, what kind of loss it suffers. */
typedef enum { KEEP_ALL, KEEP_NONE, KEEP_PREFIX, KEEP_SUFFIX, KEEP_SOME, STYLES } loss_style;

typedef struct {
    loss_style style;
    size_t border;      /* prefix and suffix: the first piece of the other half */
    uint64_t keep_of_8; /* some: the odds of one piece, 1 to 7 in 8 */
    size_t piece;       /* the number of the piece being judged */
} loss;

typedef enum { PIECE_SURVIVES, PIECE_LOST, PIECE_TORN } fate;

static size_t op_pieces(const image_op *op, uint32_t sector_size) {
    if (op->kind == IMAGE_TRUNCATE || op->blob->size == 0) return 1;
    return (size_t)((op->at + op->blob->size - 1) / sector_size - op->at / sector_size + 1);
}

static loss loss_draw(const image_ops *unsynced, uint32_t sector_size, lab_random *rng) {
    size_t pieces = 0;
    for (size_t i = 0; i < unsynced->count; i++)
        pieces += op_pieces(&unsynced->items[i], sector_size);
    return (loss){ .style = (loss_style)lab_random_below(rng, STYLES),
                   .border = (size_t)lab_random_below(rng, pieces + 1),
                   .keep_of_8 = 1 + lab_random_below(rng, 7) };
}

static fate loss_judge(loss *l, lab_random *rng) {
    size_t piece = l->piece++;
    bool at_border = piece == l->border;
    switch (l->style) {
    case KEEP_ALL: return PIECE_SURVIVES;
    case KEEP_NONE: return PIECE_LOST;
    case KEEP_PREFIX:
        if (at_border) return PIECE_TORN;
        return piece < l->border ? PIECE_SURVIVES : PIECE_LOST;
    case KEEP_SUFFIX:
        if (at_border) return PIECE_TORN;
        return piece < l->border ? PIECE_LOST : PIECE_SURVIVES;
    default:
        if (lab_random_below(rng, 8) == 0) return PIECE_TORN;
        return lab_random_below(rng, 8) < l->keep_of_8 ? PIECE_SURVIVES : PIECE_LOST;
    }
}

static void bytes_write_garbage(image_bytes *b, uint64_t at, size_t size, lab_random *rng) {
    if (at + size > b->size) image_bytes_truncate(b, at + size);
    if (size) lab_random_bytes(rng, b->data + at, size);
}

/* A sector caught in the middle: its first or last bytes are new, the rest old; or a stretch of
 * what was being written is garbage. */
static void piece_tear(image_bytes *b, uint64_t at, const uint8_t *from, size_t size,
                       lab_random *rng) {
    size_t cut = (size_t)lab_random_below(rng, size + 1);
    switch (lab_random_below(rng, 3)) {
    case 0: image_bytes_write(b, at, from, cut); break;
    case 1: image_bytes_write(b, at + cut, from + cut, size - cut); break;
    default:
        image_bytes_write(b, at, from, size);
        bytes_write_garbage(b, at + cut, (size_t)lab_random_below(rng, size - cut + 1), rng);
    }
}

/* The file system noted the new size before the content came: zeros, or whatever was on those
 * sectors before. */
static void piece_lose(image_bytes *b, uint64_t at, size_t size, lab_random *rng) {
    if (at + size <= b->size || lab_random_below(rng, 4)) return;
    size_t old = b->size;
    image_bytes_truncate(b, at + size);
    if (lab_random_below(rng, 2)) return;
    uint64_t fresh = at > old ? at : old;
    bytes_write_garbage(b, fresh, (size_t)(at + size - fresh), rng);
}

static void write_power_loss(image *img, image_inode *inode, const image_op *op, loss *l,
                             lab_random *rng) {
    for (size_t done = 0; done < op->blob->size;) {
        uint64_t at = op->at + done;
        size_t size = img->sector_size - (size_t)(at % img->sector_size);
        if (size > op->blob->size - done) size = op->blob->size - done;
        const uint8_t *from = op->blob->bytes + done;

        fate f = loss_judge(l, rng);
        if (f == PIECE_TORN && img->whole_sectors)
            f = lab_random_below(rng, 2) ? PIECE_SURVIVES : PIECE_LOST;
        if (f == PIECE_SURVIVES) image_bytes_write(&inode->durable, at, from, size);
        else if (f == PIECE_TORN) piece_tear(&inode->durable, at, from, size, rng);
        else piece_lose(&inode->durable, at, size, rng);
        done += size;
    }
}

static void inode_power_loss(image *img, image_inode *inode, lab_random *rng) {
    loss l = loss_draw(&inode->unsynced, img->sector_size, rng);
    for (size_t i = 0; i < inode->unsynced.count; i++) {
        const image_op *op = &inode->unsynced.items[i];
        if (op->kind == IMAGE_WRITE) write_power_loss(img, inode, op, &l, rng);
        else if (loss_judge(&l, rng) == PIECE_SURVIVES) bytes_apply(&inode->durable, op);
    }
}

/* File systems journal their directories in order, so a prefix of the changes survives; both ends
 * are as likely as all between. */
static void directory_power_loss(image *img, lab_random *rng) {
    size_t kept = img->directory.count;
    switch (lab_random_below(rng, 3)) {
    case 0: kept = 0; break;
    case 1: break;
    default: kept = (size_t)lab_random_below(rng, kept + 1);
    }
    for (size_t i = 0; i < kept; i++) directory_apply(img, &img->directory.items[i]);
}

void image_power_loss(image *img, uint64_t seed) {
    lab_random rng = lab_random_of(seed);
    image before = *img;
    image_init(img, before.sector_size, before.whole_sectors);

    directory_power_loss(&before, &rng);
    for (uint32_t i = 0; i < before.count; i++) {
        image_inode *old = before.inodes[i];
        if (!old || !old->linked_durably) continue;
        inode_power_loss(&before, old, &rng);

        image_inode *inode = image_inode_new(img->count, old->name);
        inode->durable = old->durable; /* moved, not copied */
        old->durable = (image_bytes){ 0 };
        bytes_copy(&inode->current, &inode->durable);
        inode->linked = inode->linked_durably = inode->synced = true;
        inodes_push(img, inode);
    }
    image_fini(&before);
}
