/* percent.h -- str % values. */
#ifndef EXPR_PERCENT_H
#define EXPR_PERCENT_H

#include "expr/format.h"

ev percent_format(world *w, ev format, ev args);

#endif
