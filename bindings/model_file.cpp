// Model files: converts trees to bytes and back. Everything read is validated.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "module.h"
#include "tree/container.h"
#include "tree/pack.h"
#include "tree/validate.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

static nb::bytes write_model_file(const nb::bytes& header, const std::vector<const TreeHandle*>& trees) {
  std::string file;
  {
    const nb::gil_scoped_release unlocked;
    std::vector<StoredArray> arrays;
    for (std::size_t i = 0; i < trees.size(); ++i) pack(trees[i]->tree, static_cast<std::uint32_t>(i), arrays);
    file = write_model({header.c_str(), header.size()}, arrays);
  }
  return nb::bytes(file.data(), file.size());
}

struct ModelFile {
  explicit ModelFile(nb::bytes bytes) : data(std::move(bytes)) {
    const auto* begin = reinterpret_cast<const unsigned char*>(data.c_str());
    const Bytes file(begin, data.size());
    const nb::gil_scoped_release unlocked;
    view = read_model(file);
  }

  TreeHandle* tree(std::uint32_t i, std::vector<std::uint32_t> n_categories) const {
    if (i >= view.n_trees) throw nb::index_error("There is no such tree.");
    const nb::gil_scoped_release unlocked;
    Tree t = unpack(view.arrays_of(i));
    const std::string fault = find_fault(t, n_categories);
    if (!fault.empty()) throw std::invalid_argument("holds an invalid tree: " + fault);
    return new TreeHandle(std::move(t), std::move(n_categories));
  }

  nb::bytes data;
  ModelView view;  // into data
};

}  // namespace spinney

void init_model_file(nb::module_& m) {
  using namespace spinney;
  m.attr("MODEL_FORMAT") = newest_format;
  m.def("write_model_file", &write_model_file, "header"_a, "trees"_a);
  nb::class_<ModelFile>(m, "ModelFile", "A complete model file with the right checksum.")
      .def(nb::init<nb::bytes>(), "data"_a)
      .def_prop_ro("header", [](const ModelFile& f) { return nb::bytes(f.view.header.data(), f.view.header.size()); })
      .def_prop_ro("n_trees", [](const ModelFile& f) { return f.view.n_trees; })
      .def("tree", &ModelFile::tree, "i"_a, "n_categories"_a,
           "Tree i, if it is valid for columns with n_categories (0: numbers).");
}
