// Reads Arrow C streams and arrays from capsules into NumPy arrays.
#include "data/arrow.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "module.h"

namespace nb = nanobind;

namespace spinney {

template <class T>
static T* content(const nb::capsule& capsule, const char* name) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!pointer) nb::raise_python_error();
  return static_cast<T*>(pointer);
}

static nb::dlpack::dtype numpy_type(const ArrowColumn& column) {
  if (column.kind == ArrowKind::boolean) return nb::dtype<bool>();
  switch (column.dtype) {
    case DType::f32:
      return nb::dtype<float>();
    case DType::i8:
      return nb::dtype<std::int8_t>();
    case DType::i16:
      return nb::dtype<std::int16_t>();
    case DType::i32:
      return nb::dtype<std::int32_t>();
    case DType::i64:
      return nb::dtype<std::int64_t>();
    case DType::u8:
      return nb::dtype<std::uint8_t>();
    case DType::u16:
      return nb::dtype<std::uint16_t>();
    case DType::u32:
      return nb::dtype<std::uint32_t>();
    case DType::u64:
      return nb::dtype<std::uint64_t>();
    default:
      return nb::dtype<double>();
  }
}

static nb::object array(const void* data, std::size_t n, nb::dlpack::dtype type, const nb::capsule& owner) {
  return nb::ndarray<nb::numpy, nb::ro>(data, {n}, owner, {}, type).cast();
}

// Converts text that should be UTF-8 to a str.
static nb::object text(const std::string& bytes, const std::string& fault) {
  nb::object found = nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "strict"));
  if (found.is_valid()) return found;
  PyErr_Clear();
  throw std::invalid_argument(fault);
}

static nb::list values_of(const ArrowColumn& column) {
  nb::list list;
  std::visit(
      [&](const auto& values) {
        for (const auto& value : values) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
            list.append(text(value, "Column '" + column.name +
                                        "' holds text that is not UTF-8. Decode it to strings with its encoding."));
          else if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::vector<bool>>)
            list.append(nb::bool_(static_cast<bool>(value)));
          else
            list.append(nb::cast(value));
        }
      },
      column.values);
  return list;
}

// (name, kind, format, values or codes, missing, categories, ordered); None for fields that a kind does not have.
static nb::tuple as_tuple(ArrowColumn&& source, std::size_t n_rows) {
  static constexpr const char* kinds[] = {"number", "boolean", "coded", "missing", "refused"};
  auto held = std::make_unique<ArrowColumn>(std::move(source));
  const ArrowColumn& column = *held;
  const nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<ArrowColumn*>(p); });
  held.release();
  const nb::object name = text(column.name, "A column's name is not UTF-8. Rename it.");
  nb::object values = nb::none(), missing = nb::none(), categories = nb::none();
  if (column.kind < ArrowKind::missing) values = array(column.data, n_rows, numpy_type(column), owner);
  if (!column.missing.empty()) missing = array(column.missing.data(), n_rows, nb::dtype<std::uint8_t>(), owner);
  if (column.kind == ArrowKind::coded) categories = values_of(column);
  return nb::make_tuple(name, kinds[static_cast<int>(column.kind)], column.format, values, missing, categories,
                        column.ordered);
}

static nb::tuple as_tuple(ArrowTable&& table) {
  nb::list columns;
  for (ArrowColumn& column : table.columns)
    columns.append(as_tuple(std::move(column), static_cast<std::size_t>(table.n_rows)));
  return nb::make_tuple(table.n_rows, table.has_columns, columns);
}

static nb::tuple read_stream(const nb::capsule& stream) {
  auto* pointer = content<ArrowArrayStream>(stream, "arrow_array_stream");
  ArrowTable table;
  {
    const nb::gil_scoped_release without_gil;
    table = read_arrow_stream(pointer);
  }
  return as_tuple(std::move(table));
}

static nb::tuple read_array(const nb::capsule& schema, const nb::capsule& array) {
  auto* schema_pointer = content<ArrowSchema>(schema, "arrow_schema");
  auto* array_pointer = content<ArrowArray>(array, "arrow_array");
  ArrowTable table;
  {
    const nb::gil_scoped_release without_gil;
    table = read_arrow_array(schema_pointer, array_pointer);
  }
  return as_tuple(std::move(table));
}

}  // namespace spinney

#define SPINNEY_ARROW_RESULT "tuple[int, bool, list[tuple[str, str, str, typing.Any, typing.Any, typing.Any, bool]]]"

void init_arrow(nb::module_& m) {
  m.def("read_arrow_stream", &spinney::read_stream, nb::arg("stream"),
        nb::sig("def read_arrow_stream(stream: object) -> " SPINNEY_ARROW_RESULT),
        "Read the capsule of an Arrow C stream: (n_rows, has_columns, columns), each column being\n"
        "(name, kind, format, values or codes, missing, categories, ordered).");
  m.def("read_arrow_array", &spinney::read_array, nb::arg("schema"), nb::arg("array"),
        nb::sig("def read_arrow_array(schema: object, array: object) -> " SPINNEY_ARROW_RESULT),
        "Read the capsules of one Arrow array, like `read_arrow_stream`.");
}
