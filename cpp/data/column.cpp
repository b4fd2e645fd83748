#include "data/column.h"
