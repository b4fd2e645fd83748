#pragma once

#include <nanobind/nanobind.h>

void init_data(nanobind::module_& m);
