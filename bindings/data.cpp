// Tables: views of the caller's columns that keep their owners alive.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "base/checksum.h"
#include "base/large_array.h"
#include "base/threads.h"
#include "data/column.h"
#include "data/overview.h"
#include "data/read.h"
#include "interrupt.h"
#include "module.h"
#include "table.h"

namespace nb = nanobind;

namespace spinney {

using Array1 = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;
using Array2 = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Bytes1 = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::device::cpu>;
using Starts1 = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes1 = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::device::cpu>;

// A view of the caller's memory: a converted copy would be freed before the engine reads it.
template <class Array>
static Array view(nb::handle values) {
  return nb::cast<Array>(values, false);
}

static DType dtype_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  if (type.lanes == 1) {
    if (code == Code::Float && type.bits == 32) return DType::f32;
    if (code == Code::Float && type.bits == 64) return DType::f64;
    if (code == Code::Bool && type.bits == 8) return DType::u8;
    if (code == Code::Int) switch (type.bits) {
        case 8:
          return DType::i8;
        case 16:
          return DType::i16;
        case 32:
          return DType::i32;
        case 64:
          return DType::i64;
      }
    if (code == Code::UInt) switch (type.bits) {
        case 8:
          return DType::u8;
        case 16:
          return DType::u16;
        case 32:
          return DType::u32;
        case 64:
          return DType::u64;
      }
  }
  throw nb::type_error("A number column must be float32, float64, bool or an integer of 8 to 64 bits.");
}

static void require_rows(std::size_t got, std::size_t expected) {
  if (got != expected)
    throw nb::value_error(
        ("A column of " + std::to_string(got) + " rows does not fit a table of " + std::to_string(expected)).c_str());
}

// Calls read_values() for n of the caller's numbers, without the GIL unless n is small.
template <class Read>
static void read_without_gil(std::size_t n, Read&& read_values) {
  constexpr std::size_t few = 1 << 16;
  if (n <= few)
    read_values();
  else
    run_interruptible([&](Interrupt&) { read_values(); });
}

void TableHandle::add_number(nb::object values, nb::object missing) {
  const auto array = view<Array1>(values);
  require_rows(array.shape(0), table.n_rows);
  Column c;
  c.dtype = dtype_of(array.dtype());
  c.data = static_cast<const std::byte*>(array.data());
  c.stride = array.stride(0) * static_cast<std::ptrdiff_t>(bytes_of(c.dtype));
  if (!missing.is_none()) {
    const auto mask = view<Bytes1>(missing);
    require_rows(mask.shape(0), table.n_rows);
    c.mask = mask.data();
    c.mask_stride = mask.stride(0);
    owners.push_back(missing);
  }
  owners.push_back(values);
  table.columns.push_back(c);
}

void TableHandle::add_matrix(nb::object values) {
  const auto array = view<Array2>(values);
  require_rows(array.shape(0), table.n_rows);
  Column c;
  c.dtype = dtype_of(array.dtype());
  const auto item = static_cast<std::ptrdiff_t>(bytes_of(c.dtype));
  c.stride = array.stride(0) * item;
  table.columns.reserve(table.n_columns() + array.shape(1));
  for (std::size_t j = 0; j < array.shape(1); ++j) {
    c.data = static_cast<const std::byte*>(array.data()) + static_cast<std::ptrdiff_t>(j) * array.stride(1) * item;
    table.columns.push_back(c);
  }
  owners.push_back(values);
}

void TableHandle::add_category(nb::object codes, std::uint32_t n_categories) {
  const auto array = view<Codes1>(codes);
  require_rows(array.shape(0), table.n_rows);
  if (n_categories == 0) throw nb::value_error("A category column needs at least one category.");
  Column c;
  c.dtype = DType::i32;
  c.data = reinterpret_cast<const std::byte*>(array.data());
  c.stride = array.stride(0) * 4;
  c.n_categories = n_categories;
  read_without_gil(table.n_rows, [&] {
    for (std::size_t r = 0; r < table.n_rows; ++r) {
      const std::int32_t code = array.data()[static_cast<std::ptrdiff_t>(r) * array.stride(0)];
      if (code < -1 || code > static_cast<std::int64_t>(n_categories))
        throw nb::value_error("A category code is out of range.");
    }
  });
  owners.push_back(codes);
  table.columns.push_back(c);
}

static void require_ascending(const std::int32_t* rows, std::size_t n, std::size_t n_rows) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < n; ++i) {
    if (rows[i] <= last || rows[i] >= static_cast<std::int64_t>(n_rows))
      throw nb::value_error("Sparse rows must be ascending and within the table.");
    last = rows[i];
  }
}

// Entries begin … end of the stored rows and values.
static Column sparse_column(const std::int32_t* rows, const Array1& values, std::size_t begin, std::size_t end) {
  static const std::int32_t none = 0;  // an empty column is still sparse: its pointer must not be null
  Column c;
  c.dtype = dtype_of(values.dtype());
  c.stride = values.stride(0) * static_cast<std::ptrdiff_t>(bytes_of(c.dtype));
  c.data = static_cast<const std::byte*>(values.data()) + static_cast<std::ptrdiff_t>(begin) * c.stride;
  c.n_sparse = end - begin;
  c.sparse_rows = c.n_sparse ? rows + begin : &none;
  return c;
}

void TableHandle::add_sparse(nb::object rows, nb::object values) {
  const auto index = view<Codes1>(rows);
  const auto array = view<Array1>(values);
  if (index.shape(0) != array.shape(0)) throw nb::value_error("Sparse rows and values have different lengths.");
  if (index.shape(0) > 1 && index.stride(0) != 1) throw nb::value_error("Sparse rows must be contiguous.");
  read_without_gil(index.shape(0), [&] { require_ascending(index.data(), index.shape(0), table.n_rows); });
  table.columns.push_back(sparse_column(index.data(), array, 0, index.shape(0)));
  owners.push_back(rows);
  owners.push_back(values);
}

void TableHandle::add_csc(nb::object starts, nb::object rows, nb::object values) {
  const auto source = view<Starts1>(starts);
  const std::vector<std::int64_t> bounds(
      source.data(),
      source.data() + source.shape(0));  // a copy, so that other threads cannot change them
  const auto index = view<Codes1>(rows);
  const auto array = view<Array1>(values);
  const auto n_stored = static_cast<std::int64_t>(index.shape(0));
  if (index.shape(0) != array.shape(0)) throw nb::value_error("Sparse rows and values have different lengths.");
  if (index.shape(0) > 1 && index.stride(0) != 1) throw nb::value_error("Sparse rows must be contiguous.");
  if (bounds.empty() || bounds.front() != 0 || bounds.back() > n_stored)
    throw nb::value_error("Sparse columns must start at 0 and end within the values.");
  if (!std::is_sorted(bounds.begin(), bounds.end())) throw nb::value_error("Sparse columns must not overlap.");
  const auto for_each_column = [&](auto body) {
    for (std::size_t j = 0; j + 1 < bounds.size(); ++j)
      body(static_cast<std::size_t>(bounds[j]), static_cast<std::size_t>(bounds[j + 1]));
  };
  read_without_gil(index.shape(0), [&] {
    for_each_column([&](std::size_t begin, std::size_t end) {
      require_ascending(index.data() + begin, end - begin, table.n_rows);
    });
  });
  for_each_column([&](std::size_t begin, std::size_t end) {
    table.columns.push_back(sparse_column(index.data(), array, begin, end));
  });
  owners.push_back(rows);
  owners.push_back(values);
}

const Column& TableHandle::at(std::size_t j) const {
  if (j >= table.n_columns()) throw nb::index_error("The table has no such column.");
  return table.columns[j];
}

static TableHandle pooled(const TableHandle& handle, double least, const std::optional<Doubles1>& times) {
  if (times) require_rows(times->shape(0), handle.table.n_rows);
  TableHandle other(handle);
  auto pools = run_interruptible([&](Interrupt&) {
    return std::make_shared<Pools>(pool_rare(handle.table, least, times ? times->data() : nullptr));
  });
  other.table = pools->apply(handle.table);
  other.pools = std::move(pools);
  return other;
}

static nb::object column_as_float64(const TableHandle& handle, std::size_t j) {
  const Column column = handle.at(j);  // a copy: other threads may add columns meanwhile
  const std::size_t n = handle.table.n_rows;
  auto* out = new double[n];
  const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  run_interruptible([&](Interrupt&) {
    std::vector<Row> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(i);
    read_rows(column, rows.data(), n, [&](std::size_t i, double value) { out[i] = value; });
  });
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(out, {n}, owner).cast();
}

using Features = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static Doubles2Out block_as_float64(const TableHandle& handle, const Features& features, bool by_row) {
  constexpr std::size_t few = 100'000;  // numbers, read in the time that other threads take to start
  const std::size_t n_rows = handle.table.n_rows;
  for (std::size_t t = 0; t < features.size(); ++t)
    if (features(t) < 0 || static_cast<std::size_t>(features(t)) >= handle.table.n_columns())
      throw nb::index_error("The table has no such column.");
  const std::size_t shape[] = {by_row ? n_rows : features.size(), by_row ? features.size() : n_rows};
  auto* out = new double[shape[0] * shape[1]];
  const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  if (shape[0] * shape[1] <= few) {
    read_block(handle.table, features.data(), features.size(), by_row, out);
    return Doubles2Out(out, 2, shape, owner);
  }
  const Table table = handle.table;  // a copy: other threads may add columns meanwhile
  run_interruptible([&](Interrupt&) { read_block(table, features.data(), features.size(), by_row, out); });
  return Doubles2Out(out, 2, shape, owner);
}

static nb::tuple copy_of_matrix(const nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>& matrix, int n_jobs) {
  const Matrix view{matrix.data(), matrix.stride(0), matrix.stride(1), matrix.shape(0), matrix.shape(1)};
  const std::size_t shape[] = {view.n_rows, view.n_columns};
  auto* copy = new double[view.n_rows * view.n_columns];
  const nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  const int n_threads = resolve_threads(n_jobs);
  const double squares =
      run_interruptible([&](Interrupt& interrupt) { return copy_with_squares(view, n_threads, interrupt, copy); });
  return nb::make_tuple(Doubles2Out(copy, 2, shape, owner), squares);
}

static Array<std::uint64_t> fingerprints_of(const TableHandle& handle, int n_jobs) {
  const int n_threads = resolve_threads(n_jobs);
  return own(run_interruptible([&](Interrupt& interrupt) { return fingerprints(handle.table, n_threads, interrupt); }));
}

using Ranges = std::tuple<Array<double>, Array<double>, Array<std::uint8_t>>;

static Ranges ranges_of(const TableHandle& handle, const std::optional<Doubles1>& weight, int n_jobs) {
  if (weight) require_rows(weight->shape(0), handle.table.n_rows);
  const int n_threads = resolve_threads(n_jobs);
  const double* weights = weight ? weight->data() : nullptr;
  const std::vector<ColumnRange> ranges = run_interruptible(
      [&](Interrupt& interrupt) { return column_ranges(handle.table, weights, n_threads, interrupt); });
  std::vector<double> low, high;
  std::vector<std::uint8_t> has_missing;
  for (const ColumnRange& range : ranges) {
    low.push_back(range.low);
    high.push_back(range.high);
    has_missing.push_back(range.has_missing);
  }
  return Ranges(own(std::move(low)), own(std::move(high)), own(std::move(has_missing)));
}

using Bytes = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;

static Bytes map_bytes(const std::shared_ptr<Spill>& spill, int file, std::size_t n_bytes,
                       std::vector<std::uint64_t> sums) {
  struct Mapped {
    std::shared_ptr<Spill> spill;
    void* first;
  };
  auto* mapped = new Mapped{spill, nullptr};
  const nb::capsule owner(mapped, [](void* p) noexcept {
    const std::unique_ptr<Mapped> m(static_cast<Mapped*>(p));
    if (m->first != nullptr) m->spill->free(m->first);
  });
  mapped->first = spill->map(file, n_bytes, std::move(sums));
  return Bytes(static_cast<const std::uint8_t*>(mapped->first), {n_bytes}, owner);
}

// A copy stored where the table is; the same array, if that is in memory.
static nb::object spilled(const TableHandle& handle, nb::object source) {
  const auto array = nb::cast<Doubles1>(source);
  const std::shared_ptr<Spill>& spill = handle.table.spill;
  if (!spill || array.shape(0) == 0) return source;
  auto* copy = new LargeArray<double>(array.shape(0), spill);
  const nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<LargeArray<double>*>(p); });
  std::copy_n(array.data(), array.shape(0), copy->data());
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(copy->data(), {array.shape(0)}, owner).cast();
}

static Array<double> values_at(const TableHandle& handle, std::size_t j, const Numbers1& rows) {
  const Column column = handle.at(j);  // a copy: other threads may add columns meanwhile
  std::vector<double> out(rows.size());
  read_without_gil(rows.size(), [&] {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows(i) >= handle.table.n_rows) throw nb::index_error("The table has no such row.");
    read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double value) { out[i] = value; });
  });
  return own(std::move(out));
}

}  // namespace spinney

static void init_spill(nb::module_& m) {
  using spinney::Spill;
  nb::class_<spinney::Checksums>(m, "Checksums", "Checksums that detect damaged bytes.")
      .def(nb::init<>())
      .def(
          "add",
          [](spinney::Checksums& sums, const spinney::Bytes& bytes) {
            nb::gil_scoped_release release;
            sums.add(bytes.data(), bytes.shape(0));
          },
          nb::arg("bytes"), "Add bytes.")
      .def("finish", &spinney::Checksums::finish, "All checksums; call it after the last byte.");
  nb::class_<Spill>(m, "Spill", "Memory in files of a folder, of which about `budget` bytes are held.")
      .def(nb::init<std::string, std::size_t>(), nb::arg("folder"), nb::arg("budget"))
      .def("map", &spinney::map_bytes, nb::arg("file"), nb::arg("n_bytes"), nb::arg("checksums"),
           "Map an open file for reading, with the checksums of its contents.")
      .def("verify", &Spill::verify, nb::call_guard<nb::gil_scoped_release>(),
           "Raise an exception if files have changed since they were written.")
      .def("release_pages", &Spill::release_pages, "Release the pages; they are read again when needed.")
      .def("touch", &Spill::touch, nb::arg("n_bytes"), "Announce that n_bytes are about to be read.")
      .def_prop_ro("n_releases", &Spill::n_releases, "How often pages were released.");
}

void init_data(nb::module_& m) {
  using spinney::TableHandle;
  init_spill(m);
  m.def("copy_matrix", &spinney::copy_of_matrix, nb::arg("matrix"), nb::arg("n_jobs"),
        "A copy of a matrix by row, and the sum of the squares of its numbers.");
  nb::class_<TableHandle>(m, "Table", "Views of the columns of one table.")
      .def(nb::init<std::size_t>(), nb::arg("n_rows"))
      .def("add_number", &TableHandle::add_number, nb::arg("values"), nb::arg("missing").none() = nb::none())
      .def("add_matrix", &TableHandle::add_matrix, nb::arg("values"))
      .def("add_category", &TableHandle::add_category, nb::arg("codes"), nb::arg("n_categories"))
      .def("add_sparse", &TableHandle::add_sparse, nb::arg("rows"), nb::arg("values"))
      .def("add_csc", &TableHandle::add_csc, nb::arg("starts"), nb::arg("rows"), nb::arg("values"))
      .def("pooled", &spinney::pooled, nb::arg("least"), nb::arg("times").none(),
           "The table with categories that occur less often than `least` pooled, in each column. `times`: repetitions "
           "of each "
           "row; None: 1.")
      .def(
          "use_spill", [](TableHandle& t, const std::shared_ptr<spinney::Spill>& spill) { t.table.spill = spill; },
          nb::arg("spill"), "Declare that the columns, and data derived from them, are stored in files.")
      .def("store", &spinney::spilled, nb::arg("numbers"),
           "The same numbers stored like the columns: a copy in files, or the array itself.")
      .def(
          "copy", [](const TableHandle& t) { return TableHandle(t); },
          "A table with the same columns, sharing their memory, to which others may be added.")
      .def("column", &spinney::column_as_float64, nb::arg("j"),
           "A copy of column j as float64: NaN is missing, a category is its code.")
      .def("block", &spinney::block_as_float64, nb::arg("features"), nb::arg("by_row"),
           "A copy of columns, as by `column`: an array of shape (n_features, n_rows), or with `by_row` its transpose.")
      .def("values_at", &spinney::values_at, nb::arg("j"), nb::arg("rows"), "Some rows of column j, as by `column`.")
      .def(
          "n_categories", [](const TableHandle& t, std::size_t j) { return t.at(j).n_categories; }, nb::arg("j"),
          "Number of categories of column j, 0 if it holds numbers.")
      .def("fingerprints", &spinney::fingerprints_of, nb::arg("n_jobs"),
           "A number for each row that depends on its values alone.")
      .def(
          "ranges", &spinney::ranges_of, nb::arg("weight").none(), nb::arg("n_jobs"),
          "Lowest and highest number of each column, and whether values are missing, over the rows of positive weight.")
      .def_prop_ro("n_rows", [](const TableHandle& t) { return t.table.n_rows; })
      .def_prop_ro("n_columns", [](const TableHandle& t) { return t.table.n_columns(); });
}
