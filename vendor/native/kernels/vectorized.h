// All kernels as one table: included once per instruction set.
#pragma once

#include "attention.h"
#include "linear.h"
#include "rows.h"

#define MLXCEL_KERNEL_TABLE(name)                                                                  \
  {name, kTileRows,   kTileColumns, WeightProduct::kInputs, pack, linear, norm, attention, rope,   \
   add,  weightedSum, activate}
