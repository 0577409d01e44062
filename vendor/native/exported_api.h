// Included before everything else where the rest is hidden: libmlxc exports its C interface, and no code of templates.
#pragma once
#pragma GCC visibility push(default)
#include "mlx/c/mlx.h"
#pragma GCC visibility pop
